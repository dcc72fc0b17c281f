"""What a system is, and the kit of all that it may touch."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any, Literal, Protocol, TypeVar

from pipeline.errors import ModelUnavailable
from pipeline.replies.reply_format import ReplyFormat, ReplySplitter
from pipeline.types import CitedSentence, Conversation, Demonstration, Event, RankedDemo, Status, Support
from storage.types import Evidence, Hit, SearchQuery

T = TypeVar("T")


class Ask(Protocol):
    """A question to the language model, as one stage of a system asks it."""

    async def __call__(self, template: str, form: ReplyFormat[T], *, stage: str, **facts: object) -> T:
        """Render the template, call the model and parse the reply; call once more if it cannot be parsed.

        Raises `UnreadableReply`, `ModelUnavailable` and `BudgetExceeded`.
        """
        ...


class Stream(Protocol):
    """Like `Ask`, for a reply that is read while it arrives."""

    def __call__(self, template: str, splitter: ReplySplitter[T], *, stage: str, **facts: object) -> AsyncIterator[T]:
        """Render, call, and yield each value as soon as it is certain; closing the iterator ends the call."""
        ...


Search = Callable[[SearchQuery, int], Awaitable[tuple[Hit, ...]]]
"""Returns at most so many hits of the turn's scope, best first. Raises `SearchUnavailable`: an outage is never an empty
result."""
Compare = Callable[[str, Sequence[str]], Awaitable[tuple[float, ...]]]
"""Returns the cosine of a text with each of others, by the embedder that the passages were indexed with."""
Rerank = Callable[[str, Sequence[Evidence]], Awaitable[tuple[float, ...]]]
"""Returns how well each sentence answers a question, read where it stands; nothing where there is no reader."""


class Supports(Protocol):
    """The local check: decides whether the whole passages of the evidence support a sentence, without a model server.

    `asked` are the texts of the conversation: what stands there may be repeated, but is no evidence.
    """

    async def __call__(self, sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support: ...


class Demos(Protocol):
    """The worked examples of one turn: those that may be shown within its scope."""

    async def __call__(self, query: str, k: int) -> tuple[RankedDemo, ...]:
        """Return the `k` that are nearest to a dialogue and its knowledge, best first."""
        ...

    def show(self, chosen: Sequence[Demonstration]) -> None:
        """Put examples before each call of a model from now on that they fit, those of the gate too."""
        ...


Say = Callable[[CitedSentence], Awaitable[bool]]
"""The only way text leaves a system; the gate stands here. Returns whether the sentence was let through."""
Judge = Callable[[CitedSentence, str], Coroutine[Any, Any, bool]]
"""Begins what `Say` will ask for, while sentences before it are still on their way; returns whether it will pass. The
text is the sentence that stands before it, which tells what its pronouns mean."""


async def no_reader(question: str, sentences: Sequence[Evidence]) -> tuple[float, ...]:
    del question, sentences
    return ()


WrittenQuery = Literal["auto", "always", "never"]
Policy = Literal["never", "always", "self-ask", "learned"]
Utility = Literal["kf1", "criticism"]
Effort = Literal["quick", "normal", "thorough"]
EFFORTS: tuple[Effort, ...] = ("quick", "normal", "thorough")  # least first
_SHARES: Mapping[Effort, Mapping[str, float]] = {
    "quick": {"passages": 0.6, "looked_up": 2 / 3, "evidence": 1 / 2, "pages": 2 / 5, "claims": 3 / 8}
    | {"asked_claims": 1 / 3, "rounds": 1 / 3, "examples": 1 / 3},
    "normal": {},
    "thorough": {"passages": 3 / 2, "looked_up": 5 / 3, "evidence": 3 / 2, "pages": 8 / 5, "claims": 3 / 2}
    | {"asked_claims": 5 / 3, "rounds": 4 / 3, "examples": 4 / 3},
}  # of what is set; what is not named stays as it is


class _NoDemos:
    async def __call__(self, query: str, k: int) -> tuple[RankedDemo, ...]:
        del query, k
        return ()

    def show(self, chosen: Sequence[Demonstration]) -> None:
        del chosen


NO_DEMOS: Demos = _NoDemos()


@dataclass(frozen=True, slots=True)
class Limits:
    passages: int = 10  # how many passages a search returns to a system
    sentences: int = 3  # how many sentences a quoted answer has at most
    question_characters: int = 4_000  # longer questions are refused: no embedder reads them and no person wrote them
    seconds: float = 60.0
    turns: int = 5  # how many of the last turns a model is shown at most
    looked_up: int = 3  # how many passages are summarised for a query
    evidence: int = 2  # how many passages are evidence for a claim of the model's own
    query: WrittenQuery = "auto"
    """Whether the model writes what is looked up; `auto`: as the system does, in `wikichat-fast` where it is needed."""
    pages: int = 5  # how many pages that a search engine names are read
    claims: int = 8  # how many claims of the model's own are verified at most
    asked_claims: int = 3  # for how many of them it is asked at most where it writes down claims and no text
    refine: bool = True  # whether a draft is refined by feedback before it is said
    rounds: int = 3  # how many candidates are drafted at most where one is drafted until it is good enough
    policy: Policy = "learned"  # when more is looked up than the question as it was asked
    utility: Utility = "kf1"  # by what a candidate is good enough
    examples: int = 3  # how many worked examples `in-context` shows before a call
    example_relevance: float = 0.7
    """What likeness to the question weighs in their choice; the rest is how far each is from the one before it."""
    example_notes: Literal["text", "triples"] = "text"  # how the notes are written that it shows
    student: bool = False
    """Whether the model is a distilled one: no examples, no reasoning first, drafting and refining in one."""

    def at(self, effort: Effort) -> "Limits":
        """Return the limits of an effort; these are those of the normal one. What is one at least stays so."""
        shares: dict[str, Any] = {name: share * getattr(self, name) for name, share in _SHARES[effort].items()}
        scaled = {name: max(round(value), min(1, getattr(self, name))) for name, value in shares.items()}
        query = "always" if effort == "thorough" and self.query == "auto" else self.query
        return replace(self, **scaled, refine=self.refine and effort != "quick", query=query)


def lower_effort(effort: Effort) -> Effort:
    """Return the next lower one, or the lowest."""
    return EFFORTS[max(0, EFFORTS.index(effort) - 1)]


@dataclass(frozen=True, slots=True)
class Kit:
    """What a system gets besides the conversation. Nothing else reaches it."""

    ask: Ask
    stream: Stream
    search: Search
    compare: Compare
    supports: Supports
    say: Say
    judge: Judge
    end_draft: Callable[[], None]  # tells that all that is to be judged has come: nothing need wait for more
    tell: Callable[[Event], None]  # never blocks: what the channel shows while it waits
    limits: Limits
    now: datetime
    random: Random
    run_in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread
    """Calls a function with arguments, one that computes for long, without keeping others waiting."""
    busy: Callable[[], bool] = lambda: False
    """Whether a call of the model would have to wait for its place now: what waits can be asked together."""
    rerank: Rerank = no_reader
    corpora: int = 1  # how many of them are in the turn's scope
    engine: Search | None = None
    """The search engine of the scope, whose `k` counts pages; None where it has none, and the corpora are searched."""
    demos: Demos = NO_DEMOS
    quote: Callable[[Evidence], bool] = lambda _: False
    """Shows what a found page says, word for word, until there is an answer; returns whether it is shown."""
    prefers_quotation: Callable[[CitedSentence], bool] = lambda _: False
    """Returns whether a sentence was withheld only as its passage, which it nearly copies, is better quoted."""


System = Callable[[Conversation, Kit], Awaitable[Status]]
"""A system: it says its answer through `kit.say`, sentence by sentence, and returns how the turn ended."""


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A system as it is registered: all that commands, settings, the doctor and evaluation know of it."""

    name: str
    summary: str  # one line for whoever chooses among systems
    answer: System
    check: System | None = None  # checks one claim; None: as `calls` tells, by the model or by rules alone
    check_text: System | None = None  # checks each statement of a text; None: likewise
    calls: tuple[str, ...] = ()
    """The templates of the model calls that it makes, in the order of a turn; none where it asks no model."""


async def ask_unconfigured(template: str, form: ReplyFormat[T], *, stage: str, **facts: object) -> T:
    del template, form, facts
    raise _unconfigured_error(stage)


async def stream_unconfigured(
    template: str, splitter: ReplySplitter[T], *, stage: str, **facts: object
) -> AsyncIterator[T]:
    """Raise `ModelUnavailable` when the first piece is waited for."""
    del template, facts
    raise _unconfigured_error(stage)
    yield splitter.close()[0]  # never reached: it makes this a generator


def _unconfigured_error(stage: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"No language model is configured, and the step “{stage}” needs one.",
        hint="Set OPENAI_API_KEY, or [model] base_url and name in footnote.toml, or ask with --system extractive.",
    )
