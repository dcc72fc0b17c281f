"""What a server says, whole or in pieces, as a reply. Pure; it takes any JSON for what it is worth.

Servers put thoughts into `reasoning`, `reasoning_content`, parts of the content, or the text itself; usage at the end,
in each piece or nowhere; and errors into a reply that began well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.llm.counting import tokens
from pipeline.llm.surrogates import sound
from pipeline.llm.thoughts import ThoughtFilter

Finish = Literal["stop", "length", "refusal", "filtered"]
_FINISHES: Mapping[str, Finish] = {"length": "length", "max_tokens": "length", "content_filter": "filtered"}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them."""

    prompt: int
    completion: int
    cached: int


class Gathering:
    """A reply as it grows."""

    def __init__(self, *, hold: bool, streamed: bool) -> None:
        self.model = ""
        self.usage: Usage | None = None
        self.finish: str | None = None
        """As the server says it; None while the reply goes on."""
        self.complete = False
        """Whether the server said that this is all."""
        self.refused = False
        self.called_tools = False
        self.filter = ThoughtFilter(hold=hold)
        self._streamed = streamed
        self._thoughts: list[str] = []
        self._text: list[str] = []

    def add(self, payload: Any) -> str:
        """Take a whole reply, or the next piece of one, or None for its end; return the visible text that is ready."""
        self.model = _text(_get(payload, "model")) or self.model
        self.usage = _usage(_get(payload, "usage")) or self.usage
        choices = _get(payload, "choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        self.finish = _text(_get(choice, "finish_reason")) or self.finish
        self.complete = self.complete or payload is None or self.finish is not None
        return self._say(_get(choice, "message") or _get(choice, "delta"))

    def end(self) -> str:
        """Say that no more will come; return the visible text that was held back."""
        return self._keep(self.filter.end())

    @property
    def text(self) -> str:
        """What was said to the reader so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """What was thought so far."""
        return "".join((*self._thoughts, *self.filter.thoughts)).strip()

    @property
    def separate(self) -> bool:
        """Whether the server itself parts thoughts from the text."""
        return bool(self._thoughts)

    @property
    def ending(self) -> Finish:
        """How the reply ended."""
        return "refusal" if self.refused else _FINISHES.get(self.finish or "", "stop")

    def estimate(self) -> int:
        """Return about how many tokens were written so far."""
        return tokens(self.text) + tokens(self.reasoning)

    def _say(self, message: Any) -> str:
        self.refused = self.refused or bool(_text(_get(message, "refusal")))
        self.called_tools = self.called_tools or bool(_get(message, "tool_calls"))
        thought, said = _parts(_get(message, "content"))
        thought += _text(_get(message, "reasoning_content")) or _text(_get(message, "reasoning"))
        if thought:
            self._thoughts.append(thought)
        ready = self.filter.feed(said)
        if self._streamed and (self._thoughts or self.filter.tagged):
            ready += self.filter.stop_holding()
        return self._keep(ready)

    def _keep(self, text: str) -> str:
        if text:
            self._text.append(text)
        return text


def error_of(payload: Any) -> Any:
    """Return the error that stands where a reply should, or None."""
    error = _get(payload, "error")
    if error is None and _get(payload, "object") == "error":
        return payload
    return error or None


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: Any) -> str:
    return sound(value) if isinstance(value, str) else ""


def _parts(content: Any) -> tuple[str, str]:
    """Return the thoughts and the text of a message's content, which some servers send as a list of parts."""
    if not isinstance(content, list):
        return "", _text(content)
    thoughts = [_parts(part["thinking"])[1] for part in content if _get(part, "thinking")]
    return "".join(thoughts), "".join(_text(_get(part, "text")) for part in content)


def _usage(said: Any) -> Usage | None:
    prompt, completion = _count(_get(said, "prompt_tokens")), _count(_get(said, "completion_tokens"))
    if prompt is None or completion is None or prompt + completion == 0:
        return None
    # Some servers leave thoughts out of the completion, and count them in the total alone.
    completion = max(completion, (_count(_get(said, "total_tokens")) or 0) - prompt)
    cached = _count(_get(_get(said, "prompt_tokens_details"), "cached_tokens")) or _count(
        _get(said, "prompt_cache_hit_tokens")
    )
    return Usage(prompt, completion, min(cached or 0, prompt))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
