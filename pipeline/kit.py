"""The contract of a system: its type, and the kit of everything that it may use."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any, Literal, Protocol, TypeVar

from pipeline.errors import ModelUnavailable
from pipeline.replies.reply_format import ReplyFormat, ReplySplitter
from pipeline.types import CitedSentence, Conversation, Demonstration, Event, RankedDemo, Status, Support
from storage.types import Evidence, Hit, SearchQuery, Step

T = TypeVar("T")


class Ask(Protocol):
    """Calls the language model for one stage of a system."""

    async def __call__(self, template: str, form: ReplyFormat[T], *, stage: str, **facts: object) -> T:
        """Call the model and parse its reply. Raises `UnreadableReply`, `ModelUnavailable` and `BudgetExceeded`."""
        ...


class Stream(Protocol):
    """Like `Ask`, for a reply that is parsed while it arrives."""

    def __call__(self, template: str, splitter: ReplySplitter[T], *, stage: str, **facts: object) -> AsyncIterator[T]:
        """Call the model, and yield each value of its reply once it is certain. Closing the iterator ends the call."""
        ...


Search = Callable[[SearchQuery, int], Awaitable[tuple[Hit, ...]]]
"""Returns at most that many hits of the turn's scope, best first. An outage raises `SearchUnavailable`."""
Compare = Callable[[str, Sequence[str]], Awaitable[tuple[float, ...]]]
"""Returns the cosine of a text with each of several others, by MiniLM or an embedder of your own."""
Rerank = Callable[[str, Sequence[str]], Awaitable[Sequence[float]]]
"""Returns the log-odds of each passage or sentence to answer a question; empty if nothing is reranked."""


async def keep_own(query: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    del query
    return tuple(hits)


class Supports(Protocol):
    """The local check: decides without a model server whether the cited passages, read in full, support a sentence.

    `asked` are the texts of the conversation. A sentence may repeat them, but they are not evidence.
    """

    async def __call__(self, sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support: ...


class Demos(Protocol):
    """The worked examples that the scope of one turn allows."""

    async def __call__(self, query: str, k: int) -> tuple[RankedDemo, ...]:
        """Return the `k` examples nearest to a dialogue and its knowledge, best first."""
        ...

    def show(self, chosen: Sequence[Demonstration]) -> None:
        """Add these examples to each later model call of the turn that they fit, including the gate's calls."""
        ...


Say = Callable[[CitedSentence], Awaitable[bool]]
"""The only way text leaves a system: through the gate. Returns whether the sentence passed."""
Judge = Callable[[CitedSentence, str], Coroutine[Any, Any, bool]]
"""Judges a sentence before its turn to be said; returns whether it will pass. The text is the sentence before it, which
shows what its pronouns mean."""


async def no_reranking(question: str, texts: Sequence[str]) -> Sequence[float]:
    del question, texts
    return ()


def remember_scores(rerank: Rerank) -> Rerank:
    """Return a reranker for one turn, which reads no text twice for one question."""
    known: dict[tuple[str, str], float] = {}
    reading = asyncio.Lock()  # the search for a draft and the interim quotation may ask for the same text at once

    async def rerank_new(question: str, texts: Sequence[str]) -> Sequence[float]:
        async with reading:
            new = [text for text in dict.fromkeys(texts) if (question, text) not in known]
            if new:
                scores = await rerank(question, new)
                known.update(zip([(question, text) for text in new], scores, strict=False))
        return [known[question, text] for text in texts if (question, text) in known]

    return rerank_new


WrittenQuery = Literal["auto", "always", "never"]
Policy = Literal["never", "always", "self-ask", "learned"]
Utility = Literal["kf1", "criticism"]
Replacement = Literal["notes", "quotation", "nothing"]  # of a withheld sentence; nothing, if its passages refute it
Effort = Literal["quick", "normal", "thorough"]
EFFORTS: tuple[Effort, ...] = ("quick", "normal", "thorough")  # least first
_SHARES: Mapping[Effort, Mapping[str, float]] = {
    "quick": {"passages": 0.6, "looked_up": 2 / 3, "evidence": 1 / 2, "pages": 2 / 5, "claims": 3 / 8}
    | {"asked_claims": 1 / 3, "rounds": 1 / 3, "examples": 1 / 3},
    "normal": {},
    "thorough": {"passages": 3 / 2, "looked_up": 5 / 3, "evidence": 3 / 2, "pages": 8 / 5, "claims": 3 / 2}
    | {"asked_claims": 5 / 3, "rounds": 4 / 3, "examples": 4 / 3},
}  # factors of the settings; other limits are not scaled


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
    question_characters: int = 4_000  # longer questions are refused: embedders cannot read them
    seconds: float = 60.0
    turns: int = 5  # how many of the last turns a model sees at most
    looked_up: int = 3  # how many passages are summarised for a query
    evidence: int = 2  # how many passages are evidence for a claim by the model
    query: WrittenQuery = "auto"
    """Whether the model writes the search query; `auto`: only if the question is not clear alone, or finds nothing."""
    pages: int = 5  # how many pages of a search engine's results are read
    claims: int = 8  # how many claims by the model are verified at most
    asked_claims: int = 3  # how many claims the model is asked for if it writes claims directly
    refine: bool = True  # whether feedback refines a draft before it is said
    rounds: int = 3  # how many candidates are drafted at most until one is good enough
    policy: Policy = "learned"  # when to look up more than the original question
    explore: float = 0.0  # the probability that the policy's first decision is reversed, so that ratings can train it
    utility: Utility = "kf1"  # the measure by which a candidate is good enough
    examples: int = 3  # how many worked examples `in-context` shows before a call
    example_relevance: float = 0.7
    """The weight of similarity to the question when examples are chosen; the rest is the weight of diversity."""
    example_notes: Literal["text", "triples"] = "text"  # how examples show their notes
    student: bool = False
    """Whether the model is distilled: no examples, no reasoning first, drafting and refining in one call."""
    one_call: bool = False  # whether the turn makes a single short call, whose reply is checked without the model

    def at(self, effort: Effort, *, one_call: bool = False) -> "Limits":
        """Return these limits, which hold for normal effort, scaled to another effort. No limit becomes zero."""
        shares: dict[str, Any] = {name: share * getattr(self, name) for name, share in _SHARES[effort].items()}
        scaled = {name: max(round(value), min(1, getattr(self, name))) for name, value in shares.items()}
        query = "always" if effort == "thorough" and self.query == "auto" else self.query
        quick = effort == "quick"
        return replace(self, **scaled, refine=self.refine and not quick, query=query, one_call=one_call and quick)


def lower_effort(effort: Effort) -> Effort:
    """Return the next lower effort, or the lowest one unchanged."""
    return EFFORTS[max(0, EFFORTS.index(effort) - 1)]


@dataclass(frozen=True, slots=True)
class Kit:
    """Everything that a system gets apart from the conversation."""

    ask: Ask
    stream: Stream
    search: Search
    compare: Compare
    supports: Supports
    say: Say
    judge: Judge
    end_draft: Callable[[], None]  # called after the last sentence to judge, so that none waits for more
    tell: Callable[[Event], None]  # reports progress that the channel shows; never blocks
    limits: Limits
    now: datetime
    random: Random
    run_in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread
    """Calls a function that computes for long, without blocking the event loop."""
    busy: Callable[[], bool] = lambda: False
    """Whether a model call would have to wait now, so that waiting calls can be merged."""
    rerank: Rerank = no_reranking
    corpora: int = 1  # how many corpora are in the turn's scope
    engine: Search | None = None
    """The search engine of the scope, whose `k` counts pages; None if the corpora are searched instead."""
    with_web: Callable[[str, Sequence[Hit]], Awaitable[tuple[Hit, ...]]] = keep_own
    """Returns hits for a query and the web passages of the turn in one ranking; only the hits if there are none."""
    demos: Demos = NO_DEMOS
    quote: Callable[[Evidence], bool] = lambda _: False
    """Shows a quotation from a found page until there is an answer; returns whether it is shown."""
    replaced_by: Callable[[CitedSentence], Replacement] = lambda _: "notes"
    note: Callable[[Step, float], None] = lambda _step, _began: None
    """Records a step that began at that time of `time.perf_counter()`; searches and model calls are recorded anyway."""


System = Callable[[Conversation, Kit], Awaitable[Status]]
"""A system: it says its answer through `kit.say`, sentence by sentence, and returns how the turn ended."""


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A registered system, as commands, settings, the doctor and evaluation see it."""

    name: str
    summary: str  # one line for people who choose a system
    answer: System
    check: System | None = None  # checks one claim; None: by the model if `calls` names any, else by rules alone
    check_text: System | None = None  # checks each statement of a text; None: likewise
    calls: tuple[str, ...] = ()
    """The templates of its model calls, in the order of a turn; empty if it calls no model."""
    one_call: bool = False  # whether it makes a single short call if quick effort is requested


async def ask_unconfigured(template: str, form: ReplyFormat[T], *, stage: str, **facts: object) -> T:
    del template, form, facts
    raise _unconfigured_error(stage)


async def stream_unconfigured(
    template: str, splitter: ReplySplitter[T], *, stage: str, **facts: object
) -> AsyncIterator[T]:
    """Raise `ModelUnavailable` when the first value is read: stands in for `stream` if no model is configured."""
    del template, facts
    raise _unconfigured_error(stage)
    yield splitter.close()[0]  # never reached: it makes this a generator


def _unconfigured_error(stage: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"No language model is configured, and the step “{stage}” needs one.",
        hint="Set OPENAI_API_KEY, or [model] base_url and name in footnote.toml, or ask with --system extractive.",
    )
