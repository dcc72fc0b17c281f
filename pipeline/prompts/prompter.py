"""Call a model for a stage: render the template, parse the reply, record the call as a `Step`.

Recoverable faults are handled here: a server without schemas gets the text format, a prompt that is too long is
truncated, and an unparsable reply is requested once more, with its fault. Other faults raise.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from pipeline.errors import BudgetExceeded, PromptTooLong, SchemaNotOffered, UnreadableReply
from pipeline.llm.model import CUT, LLM, BudgetMeter, ChatMessage, Finish, ModelCall, ModelReply
from pipeline.llm.usage import estimate_prompt_tokens
from pipeline.prompts.demonstrations import select_demos, write_triples
from pipeline.prompts.prompt_templates import TEMPLATE_FOLDER, PromptMode, render_prompt
from pipeline.replies.echo import UNREADABLE, PromptEcho
from pipeline.replies.reply_format import MAX_REPLY, ReplyFormat, ReplySplitter, T, extract_json_object
from pipeline.stages.concurrency import close_stream
from pipeline.stages.findings import SourcedFinding
from pipeline.types import Conversation, Demonstration
from storage.types import Evidence, Hit, Passage, Step


@dataclass(frozen=True, slots=True)
class PromptLoad:
    facts: Mapping[str, Any]
    examples: bool = True
    demos: tuple[Demonstration, ...] = ()  # earlier turns, most wanted first


def truncate_load(load: PromptLoad) -> PromptLoad | None:
    """Return a smaller load for a prompt that is too long; None if nothing more can be dropped.

    One thing is dropped: the last demonstration, or else the older half of the earlier turns, or else the last passage,
    or else the template's examples.
    """
    if load.demos:
        return replace(load, demos=load.demos[:-1])
    for name, value in load.facts.items():
        if isinstance(value, Conversation) and value.earlier:
            later = value.earlier[(len(value.earlier) + 1) // 2 :]
            return replace(load, facts={**load.facts, name: Conversation((*later, value.question))})
    for name, value in load.facts.items():
        fewer = _without_last_passage(value)
        if fewer:
            return replace(load, facts={**load.facts, name: fewer})
    return replace(load, examples=False) if load.examples else None


def _without_last_passage(value: object) -> tuple[Any, ...]:
    """Return sentences or findings without those of the last passage; empty if there is only one passage."""
    if not isinstance(value, tuple) or not all(isinstance(piece, Evidence | SourcedFinding) for piece in value):
        return ()
    passages = [(piece if isinstance(piece, Evidence) else piece.evidence[0]).passage.id for piece in value]
    return tuple(one for one, passage in zip(value, passages, strict=True) if passage != passages[-1])


def reference_facts(value: object) -> Any:
    """Return a fact of a call as JSON for the record: passages become their ids, and a conversation its length."""
    if isinstance(value, Hit):
        return value.passage.id
    if isinstance(value, Passage):
        return value.id
    if isinstance(value, Evidence):
        return f"{value.passage.id}:{value.span[0]}-{value.span[1]}"
    if isinstance(value, Conversation):
        return len(value.turns)
    return _reference_parts(value)


def _reference_parts(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: reference_facts(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): reference_facts(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [reference_facts(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


MAX_BRIEF_TOKENS = 900  # of a short prompt, by our estimate, which may be a tenth too low: with its reply 1,200
MAX_SHOWN = 2_000  # characters of an unreadable reply that are shown to the model again


@dataclass(frozen=True, slots=True)
class Prompter:
    """Calls the model for one turn; `prompter.ask` and `prompter.stream` go into the kit."""

    llm: LLM
    spent: BudgetMeter
    _: KW_ONLY
    note: Callable[[Step, float], None]
    now: datetime
    random: Random
    student: bool = False
    brief: bool = False  # whether prompts are short: without examples, and of `MAX_BRIEF_TOKENS` at most
    tone: str = ""  # how text for people is to be worded, in one line
    demos: Callable[[], Sequence[Demonstration]] = tuple  # returns the examples to show before the next call
    folder: Path = TEMPLATE_FOLDER  # searched first for templates
    sharing: bool = False  # whether all calls begin alike, for servers that charge less for cached text
    _seed: int = field(init=False)  # of delimiters: the same in all calls of a turn, so that caches know quoted text

    def __post_init__(self) -> None:
        object.__setattr__(self, "_seed", self.random.getrandbits(64))

    async def ask(self, template: str, form: ReplyFormat[T], *, stage: str, **facts: object) -> T:
        load = self._load(template, facts, stage)
        structured = form.schema is not None and self.llm.structured(stage)
        again: _Retry | None = None
        while True:
            call = self._call(template, load, stage, schema=form.schema if structured else None, again=again)
            try:
                return await self._attempt(call, template, load, form)
            except SchemaNotOffered:
                if not structured:
                    raise
                structured = False
            except PromptTooLong as error:
                load = _truncate_or_raise(load, error)
            except _UnreadableReply as error:
                again = _plan_retry(error, again, stage, self.spent)

    async def stream(
        self, template: str, splitter: ReplySplitter[T], *, stage: str, **facts: object
    ) -> AsyncIterator[T]:
        load = self._load(template, facts, stage)
        again: _Retry | None = None
        begun = False
        while True:
            call = self._call(template, load, stage, again=again)
            try:
                async with close_stream(self._values(call, template, load, deepcopy(splitter))) as values:
                    async for value in values:
                        begun = True
                        yield value
            except PromptTooLong as error:
                load = _truncate_or_raise(load, error)
            except _UnreadableReply as error:
                if begun:
                    raise
                again = _plan_retry(error, again, stage, self.spent)
            else:
                return

    def _load(self, template: str, facts: Mapping[str, Any], stage: str) -> PromptLoad:
        bare = self.student or self.brief
        load = PromptLoad(facts, not bare, () if bare else select_demos(template, self.demos()))
        smaller: PromptLoad | None = load
        while self.brief and smaller and estimate_prompt_tokens(self._call(template, load, stage)) > MAX_BRIEF_TOKENS:
            smaller = truncate_load(load)
            load = smaller or load
        return load

    def _call(
        self,
        template: str,
        load: PromptLoad,
        stage: str,
        *,
        schema: Mapping[str, Any] | None = None,
        again: "_Retry | None" = None,
    ) -> ModelCall:
        mode = PromptMode(
            schema is not None, self.student, load.examples, self.tone, self.sharing, self.brief, self.folder
        )
        facts = write_triples(load.facts) if any(demo.triples for demo in load.demos) else load.facts
        prompt = render_prompt(template, facts, mode, self.now, Random(self._seed), load.demos)  # noqa: S311 - see `_seed`
        messages = (*prompt.messages, *(again.messages if again else ()))
        varied = again is not None and again.varied
        return ModelCall(stage, messages, schema, prompt.max_tokens, shared=prompt.shared, varied=varied)

    async def _attempt(self, call: ModelCall, template: str, load: PromptLoad, form: ReplyFormat[T]) -> T:
        with self._recorded(call, template, load) as (noted, outcome):
            reply = await self.llm.complete(noted, self.spent)
            outcome.update(_reply_facts(reply))
            return _parse_reply(reply, form, call)

    async def _values(
        self, call: ModelCall, template: str, load: PromptLoad, splitter: ReplySplitter[T]
    ) -> AsyncGenerator[T, None]:
        pieces, begun, echo = list[str](), False, _build_echo(call)
        with self._recorded(call, template, load) as (noted, outcome):
            try:
                async with close_stream(self._pieces(noted, outcome)) as stream:
                    async for piece in stream:
                        pieces.append(piece)
                        new = splitter.feed(piece)
                        if new and echo.find("".join(pieces)) is not None:
                            break
                        for value in new:
                            begun = True
                            yield value
                fault = _find_nonsense("".join(pieces), outcome.get("finish", "stop"), call, echo)
                for value in _end_values(splitter, fault, begun=begun, cut=outcome.get("finish") in CUT):
                    yield value
            except UnreadableReply as error:
                reply = ModelReply("".join(pieces), "", finish=outcome.get("finish", "stop"))
                raise _UnreadableReply(str(error), reply) from error
            finally:
                outcome.setdefault("reply", "".join(pieces)[:MAX_REPLY])

    @contextmanager
    def _recorded(self, call: ModelCall, template: str, load: PromptLoad) -> Iterator[tuple[ModelCall, dict[str, Any]]]:
        """Record a call; yield it with a dictionary for its result, which the block fills in. Errors are recorded."""
        began, outcome, lost = time.perf_counter(), dict[str, Any](), list[ModelReply]()
        try:
            yield replace(call, note_lost=lost.append), outcome
        except GeneratorExit:  # the reader closed the stream
            outcome["finish"] = "stopped"
            raise
        except BaseException as error:
            if not lost:
                outcome.setdefault("attempts", _count_attempts(error, self.spent))
            outcome["error"] = f"{type(error).__name__.removeprefix('_')}: {error}".rstrip(": ")
            raise
        finally:
            outcome = _add_lost(outcome, lost)
            facts = {name: reference_facts(value) for name, value in load.facts.items()}
            form = "text" if call.schema is None else "schema"
            request = {"template": template, "facts": facts, "format": form, "examples": load.examples}
            if load.demos:
                request |= {"demos": [demo.id for demo in load.demos]}
                request |= {"demo_corpora": sorted({corpus for demo in load.demos for corpus in demo.corpora})}
            self.note(Step(call.stage, {**request, **outcome}, (time.perf_counter() - began) * 1000), began)

    async def _pieces(self, call: ModelCall, outcome: dict[str, Any]) -> AsyncGenerator[str, None]:
        """Yield the text of a reply as it arrives; at the end, add the figures of the whole reply to `outcome`."""
        any_piece = False
        async with close_stream(self.llm.stream(call, self.spent)) as stream:
            async for piece in stream:
                if isinstance(piece, ModelReply):
                    outcome |= _reply_facts(piece)
                    if any_piece:
                        continue
                any_piece = True
                yield piece.text


class _UnreadableReply(UnreadableReply):
    def __init__(self, reason: str, reply: ModelReply) -> None:
        super().__init__(reason)
        self.reply = reply


def _parse_reply(reply: ModelReply, form: ReplyFormat[T], call: ModelCall) -> T:
    """Parse a reply: of one that was cut off or ends in an echo of the prompt, the complete items before that."""
    if not reply.text.strip():
        raise _UnreadableReply("it is empty", reply)
    if len(reply.text) > MAX_REPLY:
        raise _UnreadableReply("it is far too long", reply)
    if reply.finish == "loop" and not call.varied:
        raise _UnreadableReply("it repeats itself", reply)
    rating = call.stage in {"refine", "grade"}  # in a few words and scores, which examples share
    at = _build_echo(call, examples=not rating).find(reply.text)
    text, cut = reply.text[:at], reply.finish in CUT or at is not None
    if not text.strip():
        raise _UnreadableReply("it repeats the instructions", reply)
    try:
        if call.schema is not None:
            return form.from_json(extract_json_object(text, cut=cut))
        return form.from_text(text.rpartition("\n")[0] or text if cut else text)
    except UnreadableReply as error:
        raise _UnreadableReply(str(error), reply) from error


def _build_echo(call: ModelCall, *, examples: bool = True) -> PromptEcho:
    return PromptEcho([(message.role, message.text) for message in call.messages], examples=examples)


def _find_nonsense(text: str, finish: Finish, call: ModelCall, echo: PromptEcho) -> str:
    """Return why a reply is not to be read to its end; empty if it is."""
    if echo.find(text) is not None:
        return "it repeats the instructions"
    return "it repeats itself" if finish == "loop" and not call.varied else ""


def _end_values(splitter: ReplySplitter[T], fault: str, *, begun: bool, cut: bool) -> tuple[T, ...]:
    """Return the last values of a stream; none if it ended in nonsense. Raises `UnreadableReply`."""
    if fault and not begun:
        raise UnreadableReply(fault)
    return () if fault else splitter.close(cut=cut)


def _truncate_or_raise(load: PromptLoad, error: PromptTooLong) -> PromptLoad:
    smaller = truncate_load(load)
    if smaller is None:
        raise error
    return smaller


@dataclass(frozen=True, slots=True)
class _Retry:
    """How a call is made again: with its fault in words, or with a penalty for repetition."""

    messages: tuple[ChatMessage, ...] = ()
    varied: bool = False


def _plan_retry(error: _UnreadableReply, before: _Retry | None, stage: str, spent: BudgetMeter) -> _Retry:
    """Return how to make a call again; raise the final error if that was done before, or no call is left."""
    if before or spent.calls >= spent.budget.calls:
        raise UnreadableReply(
            f"The model's reply at the step “{stage}” could not be read{', twice' if before else ''}: {error}.",
            hint="`footnote doctor --model` shows which settings suit this model.",
        ) from error
    if error.reply.finish == "loop":
        return _Retry(varied=True)
    cut = " It was cut off before its end: be briefer." if error.reply.finish == "length" else ""
    shown = (ChatMessage("assistant", error.reply.text[:MAX_SHOWN]),) if error.reply.text.strip() else ()
    fault = f"{UNREADABLE}{error}.{cut} Reply again, whole, in the format asked for, with nothing else."
    return _Retry((*shown, ChatMessage("user", fault)))


def _reply_facts(reply: ModelReply) -> dict[str, Any]:
    figures = ("prompt_tokens", "completion_tokens", "cached_tokens", "estimated", "cost", "attempts")
    texts = {"model": reply.model, "reply": reply.text[:MAX_REPLY], "reasoning": reply.reasoning[:MAX_REPLY]}
    return {**texts, "finish": reply.finish, **{name: getattr(reply, name) for name in figures}}


def _add_lost(outcome: Mapping[str, Any], lost: Sequence[ModelReply]) -> dict[str, Any]:
    """Return a call's outcome with the usage of its lost attempts; if none succeeded, the last one is the outcome."""
    whole: dict[str, Any] = {"attempts": 1, **(_reply_facts(lost[-1]) if lost else {}), **outcome}
    added = lost if "prompt_tokens" in outcome else lost[:-1]
    for reply in added:
        for figure in ("prompt_tokens", "completion_tokens", "cached_tokens"):
            whole[figure] += getattr(reply, figure)
        whole["estimated"] |= reply.estimated
        whole["cost"] = None if None in (whole["cost"], reply.cost) else whole["cost"] + reply.cost
    return whole


def _count_attempts(error: BaseException, spent: BudgetMeter) -> int:
    """Return 1 if the failed call was sent to the server, or 0 if it was refused before."""
    late = spent.deadline is not None and time.monotonic() >= spent.deadline
    return int(not isinstance(error, SchemaNotOffered) and (late or not isinstance(error, BudgetExceeded)))
