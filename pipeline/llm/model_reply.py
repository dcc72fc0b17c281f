"""Collect a reply, whole or in pieces, separate the model's reasoning from it, and validate it. Pure.

Any JSON is accepted; unusable fields are ignored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import ModelRefused, ModelUnavailable, PipelineError, SchemaNotOffered
from pipeline.llm.chat_request import SCHEMA_ARGUMENT, ModelRequest, ServerQuirks, is_reasoning_model, repair_surrogates
from pipeline.llm.model import Finish, ModelReply
from pipeline.llm.model_settings import ModelSettings
from pipeline.llm.repetition import CHECKED_CHARACTERS, find_loop
from pipeline.llm.server_errors import REFUSED_HINT, TransientError
from pipeline.llm.usage import estimate_tokens, price_usage
from storage.language.lazy_pattern import lazy_compile

_REASONING_TAG = lazy_compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_REASONING_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")
_MAX_TAG = max(map(len, _REASONING_TAGS))


class ReasoningFilter:
    """Separates reasoning (`<think>`) from visible text as it arrives, without leading white space."""

    def __init__(self, *, hold: bool) -> None:
        self.tagged = False  # whether any tag was seen
        self.unopened = False  # whether reasoning ended that never began
        self.late = False  # whether that was detected after earlier text had been returned
        self.reasoning: list[str] = []
        self._hold = hold
        self._inside = False
        self._begun = False
        self._unread = ""
        self._held: list[str] = []

    def feed(self, text: str) -> str:
        if not self._unread and "<" not in text:
            self._take(text)
            return "" if self._hold else self._release()
        self._unread += text
        while tag := _REASONING_TAG.search(self._unread):
            before, self._unread = self._unread[: tag.start()], self._unread[tag.end() :]
            self._take(before)
            self._turn(closing=bool(tag[1]))
        ready = len(self._unread) - _partial_tag_length(self._unread)
        self._take(self._unread[:ready])
        self._unread = self._unread[ready:]
        return "" if self._hold else self._release()

    def stop_holding(self) -> str:
        """Stop holding text back; return the held text."""
        self._hold = False
        return self._release()

    def end(self) -> str:
        self._take(self._unread)
        self._unread = ""
        return self.stop_holding()

    def _take(self, text: str) -> None:
        (self.reasoning if self._inside else self._held).append(text)

    def _turn(self, *, closing: bool) -> None:
        self.tagged = True
        if closing and not self._inside:
            self.unopened = True
            self.late = self.late or self._begun
            self.reasoning += self._held
            self._held = []
        self._inside = not closing

    def _release(self) -> str:
        text, self._held = "".join(self._held), []
        if not self._begun:
            text = text.lstrip()
        self._begun = self._begun or bool(text)
        return text


def _partial_tag_length(text: str) -> int:
    start = text.rfind("<", max(0, len(text) - _MAX_TAG + 1))
    tail = text[start:].lower() if start >= 0 else ""
    return len(tail) if tail and any(tag.startswith(tail) for tag in _REASONING_TAGS) else 0


_FINISHES: Mapping[str, Finish] = {
    "length": "length", "max_tokens": "length", "content_filter": "filtered", "loop": "loop",
}  # fmt: skip
_CHECK_STRIDE = 64  # characters after which a reply is checked again for a loop


@dataclass(frozen=True, slots=True)
class TokenCounts:
    prompt: int
    completion: int
    cached: int


class ReplyAccumulator:
    def __init__(self, *, hold: bool) -> None:
        self.model = ""
        self.usage: TokenCounts | None = None
        self.finish: str | None = None  # the server's own value; None while the reply continues
        self.complete = False  # whether the server marked the end
        self.refused = False
        self.called_tools = False
        self.filter = ReasoningFilter(hold=hold)
        self._reasoning: list[str] = []
        self._text: list[str] = []
        self._latest = ""  # the end of all that came, reasoning included
        self._unchecked = 0  # how many characters of it came since the last check for a loop

    def add(self, payload: Any) -> str:
        """Add a whole reply, the next piece, or None for its end; return the visible text that is ready."""
        whole = _as_fields(payload)
        if (name := whole.get("model")) != self.model:
            self.model = _as_text(name) or self.model
        if used := whole.get("usage"):
            self.usage = _parse_usage(used) or self.usage
        choices = whole.get("choices")
        choice = _as_fields(choices[0]) if isinstance(choices, list) and choices else {}
        self.finish = _as_text(choice.get("finish_reason")) or self.finish
        self.complete = self.complete or payload is None or self.finish is not None
        return self._say(_as_fields(choice.get("message") or choice.get("delta")))

    def detect_loop(self) -> bool:
        """Return whether the reply repeats itself without end, which completes it."""
        if self._unchecked < _CHECK_STRIDE:
            return False
        self._unchecked = 0
        if find_loop(self._latest) is None:
            return False
        self.finish, self.complete = "loop", True
        return True

    def end(self) -> str:
        """Return the visible text that was held back, without the repetitions of a loop."""
        shown = len(self.text)
        whole = self.text + self.filter.end()
        at = find_loop(whole) if self.finish == "loop" else None
        self._text = [whole[:at]]
        return whole[shown : None if at is None else max(at, shown)]

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        return "".join((*self._reasoning, *self.filter.reasoning)).strip()

    @property
    def ending(self) -> Finish:
        return "refusal" if self.refused else _FINISHES.get(self.finish or "", "stop")

    def estimate(self) -> int:
        return estimate_tokens(self.text) + estimate_tokens(self.reasoning)

    def _say(self, message: Mapping[str, Any]) -> str:
        self.refused = self.refused or bool(_as_text(message.get("refusal")))
        self.called_tools = self.called_tools or bool(message.get("tool_calls"))
        reasoning, text = _split_content(message.get("content"))
        reasoning += _as_text(message.get("reasoning_content")) or _as_text(message.get("reasoning"))
        if reasoning:
            self._reasoning.append(reasoning)
        self._latest = f"{self._latest}{reasoning}{text}"[-CHECKED_CHARACTERS:]
        self._unchecked += len(reasoning) + len(text)
        ready = self.filter.feed(text)
        if self._reasoning or self.filter.tagged:
            ready += self.filter.stop_holding()
        if ready:
            self._text.append(ready)
        return ready


def find_error(payload: Any) -> Any:
    """Return the error sent instead of a reply, or None."""
    error = _get(payload, "error")
    if error is None and _get(payload, "object") == "error":
        return payload
    return error or None


def _as_fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _as_text(value: Any) -> str:
    return repair_surrogates(value) if isinstance(value, str) else ""


def _split_content(content: Any) -> tuple[str, str]:
    """Return reasoning and text of a message's content, which some servers send as a list."""
    if not isinstance(content, list):
        return "", _as_text(content)
    reasoning = [_split_content(part["thinking"])[1] for part in content if _get(part, "thinking")]
    return "".join(reasoning), "".join(_as_text(_get(part, "text")) for part in content)


def _parse_usage(said: Any) -> TokenCounts | None:
    prompt, completion = (_parse_count(_get(said, f"{kind}_tokens")) for kind in ("prompt", "completion"))
    if prompt is None or completion is None or prompt + completion == 0:
        return None
    # Some servers count reasoning only in the total.
    completion = max(completion, (_parse_count(_get(said, "total_tokens")) or 0) - prompt)
    details = _get(said, "prompt_tokens_details")
    cached = _parse_count(_get(details, "cached_tokens"))
    cached = cached or _parse_count(_get(said, "prompt_cache_hit_tokens")) or 0
    return TokenCounts(prompt, completion, min(cached, prompt))


def _parse_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def find_objection(
    got: ReplyAccumulator, request: ModelRequest, settings: ModelSettings
) -> ServerQuirks | TransientError | PipelineError | None:
    """Return why a reply is unusable: quirks for another try, a transient fault, or an error; None if usable."""
    model = request.plan.model
    if got.text.strip() or got.ending == "loop":
        return None
    if got.ending in {"refusal", "filtered"}:
        filtered = f"a content filter of the model server at {settings.server} stopped the reply"
        declined = f"the model {model} declined to reply"
        return ModelRefused(filtered if got.ending == "filtered" else declined, hint=REFUSED_HINT)
    if got.reasoning and got.ending == "length":
        return _reasoning_overflow(request, settings)
    if got.reasoning and SCHEMA_ARGUMENT in request.arguments:
        return SchemaNotOffered(f"the schema held the reasoning of {model}, not its reply")
    what = "called a tool instead of replying" if got.called_tools else "sent an empty reply"
    hint = "set another model, or context_tokens if calls may be longer than its context window"
    return TransientError(f"the model {model} {what}", hint=hint, tries=1)


def update_quirks(got: ReplyAccumulator, quirks: ServerQuirks) -> ServerQuirks:
    if not (got.reasoning or got.filter.unopened):
        return quirks if quirks.unopened else replace(quirks, unopened=False)
    return replace(quirks, thinks=True, unopened=got.filter.unopened)


def build_reply(got: ReplyAccumulator, request: ModelRequest, settings: ModelSettings) -> ModelReply:
    """Build the reply with its cost; tokens are estimated if the server does not count them."""
    used = got.usage or TokenCounts(request.prompt_tokens, got.estimate(), 0)
    names = (request.plan.model, got.model)
    return ModelReply(
        got.text,
        got.model or request.plan.model,
        reasoning=got.reasoning,
        finish=got.ending,
        prompt_tokens=used.prompt,
        completion_tokens=used.completion,
        cached_tokens=used.cached,
        estimated=got.usage is None,
        cost=price_usage(settings.prices, names, used.prompt, used.cached, used.completion),
    )


def _reasoning_overflow(request: ModelRequest, settings: ModelSettings) -> ServerQuirks | ModelUnavailable:
    if settings.thinks is None and not is_reasoning_model(settings, request.plan.model, request.quirks):
        return replace(request.quirks, thinks=True)
    used = f"used all of its {request.reply_tokens} tokens for reasoning and replied nothing"
    return ModelUnavailable(
        f"the model {request.plan.model} {used}",
        hint="raise thinking_tokens of the model, or lower its reasoning_effort",
    )
