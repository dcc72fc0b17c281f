"""Asking a model as a stage does: a template with its facts in, a value out, each call noted as a `Step`.

What is harmless is put right here: a server that keeps no schema is asked for the text format, a prompt that is too
long is cut, and a reply that cannot be read is asked for once more, with what was wrong said. All else raises.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from datetime import datetime
from random import Random
from typing import Any

from pipeline.errors import BudgetExceeded, PromptTooLong, SchemaNotOffered, UnreadableReply
from pipeline.forms import Form, Splitter, T
from pipeline.model import LLM, Message, ModelCall, ModelReply, Spent
from pipeline.parsing.reading import LONGEST, json_object
from pipeline.prompting import Manner, render
from pipeline.referring import referred
from pipeline.streams import closing
from pipeline.trimming import Load, smaller
from storage.types import Step

SHOWN = 2_000
"""Characters of an unreadable reply that are shown to the model again."""


class Prompter:
    """One turn's way to the model; `prompter.ask` and `prompter.stream` are what go into the kit."""

    def __init__(
        self,
        llm: LLM,
        spent: Spent,
        *,
        note: Callable[[Step, float], None],
        now: datetime,
        random: Random,
        student: bool = False,
    ) -> None:
        self._llm = llm
        self._spent = spent
        self._note = note
        self._now = now
        self._random = random
        self._student = student

    async def ask(self, template: str, form: Form[T], *, stage: str, **facts: object) -> T:
        """Ask, and read the reply; see `pipeline.kit.Ask`."""
        load = Load(facts, examples=not self._student)
        structured = form.schema is not None and self._llm.structured(stage)
        again: tuple[Message, ...] = ()
        while True:
            call = self._call(template, load, stage, schema=form.schema if structured else None, again=again)
            try:
                return await self._attempt(call, template, load, form)
            except SchemaNotOffered:
                if not structured:
                    raise
                structured = False
            except PromptTooLong as error:
                load = _smaller(load, error)
            except _UnreadableReply as error:
                if again:
                    raise _for_good(error, stage) from error
                again = _once_more(error)

    async def stream(self, template: str, splitter: Splitter[T], *, stage: str, **facts: object) -> AsyncIterator[T]:
        """Ask, and give each value as soon as it is certain; see `pipeline.kit.Stream`."""
        load = Load(facts, examples=not self._student)
        again: tuple[Message, ...] = ()
        while True:
            call = self._call(template, load, stage, again=again)
            try:
                async with closing(self._values(call, template, load, splitter)) as values:
                    async for value in values:
                        yield value
            except PromptTooLong as error:
                load = _smaller(load, error)
            except _UnreadableReply as error:
                if again:
                    raise _for_good(error, stage) from error
                again = _once_more(error)
            else:
                return

    def _call(
        self,
        template: str,
        load: Load,
        stage: str,
        *,
        schema: Mapping[str, Any] | None = None,
        again: tuple[Message, ...] = (),
    ) -> ModelCall:
        manner = Manner(structured=schema is not None, student=self._student, shown=load.examples)
        prompt = render(template, load.facts, manner, self._now, self._random)
        return ModelCall(stage, (*prompt.messages, *again), schema, prompt.max_tokens)

    async def _attempt(self, call: ModelCall, template: str, load: Load, form: Form[T]) -> T:
        """Make one call and note it with what came of it."""
        began, outcome = time.perf_counter(), dict[str, Any]()
        try:
            reply = await self._llm.complete(call, self._spent)
            outcome = _replied(reply)
            return _read(reply, form, structured=call.schema is not None)
        except BaseException as error:
            outcome.setdefault("attempts", _attempts(error, self._spent))
            outcome["error"] = _said(error)
            raise
        finally:
            self._note(_step(call, template, load, outcome, began), began)

    async def _values(
        self, call: ModelCall, template: str, load: Load, splitter: Splitter[T]
    ) -> AsyncGenerator[T, None]:
        """Yield what one streamed call says, and note it with what came of it."""
        began, pieces, outcome = time.perf_counter(), list[str](), dict[str, Any]()
        try:
            async with closing(self._pieces(call, outcome)) as stream:
                async for piece in stream:
                    pieces.append(piece)
                    for value in splitter.feed(piece):
                        yield value
            for value in _closed(splitter, "".join(pieces), outcome):
                yield value
        except BaseException as error:
            outcome.setdefault("attempts", _attempts(error, self._spent))
            outcome["error"] = _said(error)
            raise
        finally:
            rest = {"reply": "".join(pieces)[:LONGEST], "attempts": 1}
            self._note(_step(call, template, load, rest | outcome, began), began)

    async def _pieces(self, call: ModelCall, outcome: dict[str, Any]) -> AsyncGenerator[str, None]:
        """Yield the text of a call; put what the whole reply says of itself into `outcome`."""
        any_piece = False
        async with closing(self._llm.stream(call, self._spent)) as stream:
            async for piece in stream:
                if isinstance(piece, ModelReply):
                    outcome |= _replied(piece)
                    if any_piece:
                        continue
                any_piece = True
                yield piece.text


class _UnreadableReply(UnreadableReply):
    """One reply could not be read."""

    def __init__(self, reason: str, reply: ModelReply) -> None:
        super().__init__(reason)
        self.reply = reply


def _read(reply: ModelReply, form: Form[T], *, structured: bool) -> T:
    """Return what a reply says."""
    text = reply.text
    if not text.strip():
        raise _UnreadableReply("it is empty", reply)
    if len(text) > LONGEST:
        raise _UnreadableReply("it is far too long", reply)
    try:
        return form.from_json(json_object(text)) if structured else form.from_text(text)
    except UnreadableReply as error:
        raise _UnreadableReply(str(error), reply) from error


def _closed(splitter: Splitter[T], text: str, outcome: Mapping[str, Any]) -> tuple[T, ...]:
    """Return the last values of a reply; the reply itself goes with the error if it cannot be read."""
    try:
        return splitter.close()
    except UnreadableReply as error:
        finish = outcome.get("finish", "stop")
        raise _UnreadableReply(str(error), ModelReply(text, "", finish=finish)) from error


def _smaller(load: Load, error: PromptTooLong) -> Load:
    """Return a smaller load; raise the error where there is none."""
    found = smaller(load)
    if found is None:
        raise error
    return found


def _once_more(error: _UnreadableReply) -> tuple[Message, ...]:
    """Return what is said after a reply that could not be read."""
    cut = " It was cut off before its end: be briefer." if error.reply.finish == "length" else ""
    said = (Message("assistant", error.reply.text[:SHOWN]),) if error.reply.text.strip() else ()
    fault = f"This reply cannot be read: {error}.{cut} Reply again, whole, in the format asked for, with nothing else."
    return (*said, Message("user", fault))


def _for_good(error: UnreadableReply, stage: str) -> UnreadableReply:
    return UnreadableReply(
        f"The model's reply at the step “{stage}” could not be read, twice: {error}.",
        hint="`footnote doctor --model` tells which settings suit this model.",
    )


def _replied(reply: ModelReply) -> dict[str, Any]:
    return {
        "model": reply.model,
        "reply": reply.text[:LONGEST],
        "reasoning": reply.reasoning[:LONGEST],
        "finish": reply.finish,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "cached_tokens": reply.cached_tokens,
        "estimated": reply.estimated,
        "cost": reply.cost,
        "attempts": reply.attempts,
    }


def _step(call: ModelCall, template: str, load: Load, outcome: Mapping[str, Any], began: float) -> Step:
    asked = {
        "template": template,
        "facts": {name: referred(value) for name, value in load.facts.items()},
        "format": "text" if call.schema is None else "schema",
        "examples": load.examples,
    }
    return Step(call.stage, {**asked, **outcome}, (time.perf_counter() - began) * 1000)


def _attempts(error: BaseException, spent: Spent) -> int:
    """Return 0 for a call that was refused before it was sent, 1 for one that failed or was cut short."""
    late = spent.deadline is not None and time.monotonic() >= spent.deadline
    return int(not isinstance(error, SchemaNotOffered) and (late or not isinstance(error, BudgetExceeded)))


def _said(error: BaseException) -> str:
    return f"{type(error).__name__.removeprefix('_')}: {error}".rstrip(": ")
