"""Record what a turn does, and let out only sentences that its passages support.

`Recorder` wraps the search of a turn: it records every search and model call as a `Step`, and remembers every passage
found. `Gate` is the only way text leaves a system; the answer consists of the sentences that pass it.

The gate trusts no system. Evidence must be a passage retrieved in this turn, unchanged in every field, of a document
that still exists. Text that is not a quotation must not have links, images or mentions. Withheld sentences are counted
and recorded with their reason.

If there is a model, it judges every sentence that is neither a quotation nor surely false, together with the
conversation. If the model fails, only sentences that the local check is sure of pass. A sentence that changes a
fact of its passage is not judged: the passage is quoted instead.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Protocol

from pipeline.errors import PipelineError
from pipeline.kit import Replacement, Search, Supports
from pipeline.replies import footnotes, markup
from pipeline.support.support_check import find_verbatim_passage
from pipeline.types import (
    Answer,
    AnsweredSentence,
    CitedSentence,
    ClaimChecked,
    ClaimExplained,
    Event,
    PageQuoted,
    PassagesFound,
    SearchStarted,
    SentencePassed,
    Status,
    Support,
    Usage,
)
from storage.types import CheckedClaim, Claim, Evidence, Hit, SearchQuery, Step, Verdict, is_web_corpus

log = logging.getLogger(__name__)

REMOVED = "A document that it cites was removed meanwhile."


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step with its start and end on `time.perf_counter()`."""

    step: Step
    began: float
    ended: float


@dataclass
class Recorder:
    """Records the searches and model calls of one turn; `search`, `engine` and `tell` go into the kit."""

    passages: Search  # of the turn's scope
    _: KW_ONLY
    report: Callable[[Event], None]
    web: Search | None = None  # None if the web is not in the turn's scope
    _noted: list[TimedStep] = field(default_factory=list, init=False)
    _claims: list[CheckedClaim] = field(default_factory=list, init=False)
    _found: dict[str, Hit] = field(default_factory=dict, init=False)
    _began: float = field(default_factory=time.perf_counter, init=False)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All searches and model calls so far, in the order in which they started."""
        ordered = sorted(self._noted, key=lambda noted: noted.began)
        return tuple(replace(noted.step, began=round((noted.began - self._began) * 1000, 3)) for noted in ordered)

    @property
    def misread(self) -> bool:
        """Return whether a summary or a draft, on which an abstention rests, could not be read."""
        resting = (noted.step for noted in self._noted if noted.step.stage in {"summarise", "draft"})
        return any(str(step.facts.get("error", "")).startswith("UnreadableReply") for step in resting)

    @property
    def found(self) -> Mapping[str, Hit]:
        """Every passage retrieved in this turn by its id, as first found; a live read-only view."""
        return MappingProxyType(self._found)

    @property
    def claims(self) -> tuple[CheckedClaim, ...]:
        """Every claim by the model that was verified, whatever the verdict, in the order of verification."""
        return tuple(self._claims)

    @property
    def usage(self) -> Usage:
        """Usage of the model calls noted so far."""
        calls = (noted for noted in self._noted if noted.step.stage != "search")
        sent = [noted for noted in calls if noted.step.facts.get("attempts")]
        facts = [noted.step.facts for noted in sent]
        costs = [fact["cost"] for fact in facts if "cost" in fact]
        return Usage(
            llm_calls=len(sent),
            llm_rounds=_count_rounds(sent),
            prompt_tokens=sum(fact.get("prompt_tokens", 0) for fact in facts),
            cached_tokens=sum(fact.get("cached_tokens", 0) for fact in facts),
            completion_tokens=sum(fact.get("completion_tokens", 0) for fact in facts),
            cost=None if not costs or None in costs else sum(costs),
        )

    def tell(self, event: Event) -> None:
        """Pass an event on, and store its claim if it has one; a claim with reasoning replaces its earlier version."""
        if isinstance(event, ClaimChecked):
            self._claims.append(event.checked)
        if isinstance(event, ClaimExplained):
            explained = event.checked
            self._claims = [explained if checked.claim == explained.claim else checked for checked in self._claims]
        self.report(event)

    def note(self, step: Step, began: float) -> None:
        """Record a model call that has just ended. `began` is its start on the clock of `time.perf_counter()`."""
        self._noted.append(TimedStep(step, began, time.perf_counter()))

    async def search(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        """Search, and record the search; a failure is recorded and raised."""
        return await self._record(self.passages, query, k)

    @property
    def engine(self) -> Search | None:
        """The web search of the turn. Web pages go into the record in full, as they are stored nowhere else."""
        return partial(self._record, self.web) if self.web else None

    async def add(self, text: str, hits: Sequence[Hit]) -> None:
        """Record these hits as if a search for the text had found them."""

        async def fetch(_query: SearchQuery, _k: int) -> tuple[Hit, ...]:
            return tuple(hits)

        await self._record(fetch, SearchQuery(text), len(hits))

    async def _record(self, search: Search, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        """Search, and record the search, with new passages of web pages."""
        self.report(SearchStarted("" if query.unchecked else query.text))
        began = time.perf_counter()
        try:
            hits = await search(query, k)
        except BaseException as error:
            self._note(query, k, began, {"error": f"{type(error).__name__}: {error}".rstrip(": ")})
            raise
        # A recorded hit's corpus decides who may see it, and its document shows if it has been erased since.
        recorded = tuple((hit.passage.id, hit.score, hit.passage.corpus, hit.passage.document) for hit in hits)
        new = [hit for hit in hits if is_web_corpus(hit.passage.corpus) and hit.passage.id not in self._found]
        self._note(query, k, began, {"hits": recorded} | ({"kept": tuple(new)} if new else {}))
        for hit in hits:
            self._found.setdefault(hit.passage.id, hit)
        self.report(PassagesFound("" if query.unchecked else query.text, hits))
        return hits

    def nearest(self, limit: int) -> tuple[Hit, ...]:
        """Return the first passage found of each page, at most `limit`, in the order found."""
        pages: dict[tuple[str, str], Hit] = {}
        for hit in self._found.values():
            pages.setdefault((hit.document.corpus, hit.document.key), hit)
        return tuple(pages.values())[:limit]

    def _note(self, query: SearchQuery, k: int, began: float, outcome: Mapping[str, object]) -> None:
        facts = {"query": query.text, "time": query.time, "k": k, **outcome}
        self.note(Step("search", facts, (time.perf_counter() - began) * 1000), began)


def _count_rounds(calls: list[TimedStep]) -> int:
    """Return the largest number of calls of which no two overlap.

    Whether a call needed the result of another is unknown here, so two independent calls that the server ran one after
    the other count as two. `footnote evaluate speed turn` follows dependencies.
    """
    rounds, free = 0, float("-inf")
    for call in sorted(calls, key=lambda call: call.ended):
        if call.began >= free:
            rounds, free = rounds + 1, call.ended
    return rounds


class Verify(Protocol):
    """Has a model judge a sentence by its cited passages; returns None if they contain no sentence to judge it by.

    `coming()` says when another sentence may follow, as sentences that arrive together can be judged together. `before`
    is the previous sentence, and `place` the sentence's index in the turn.
    """

    async def __call__(
        self, sentence: str, evidence: Sequence[Evidence], *, coming: Callable[[], "Coming"], before: str, place: int
    ) -> CheckedClaim | None: ...


class Coming(Enum):
    """When the next sentence of a turn will be ready to be judged."""

    AT_ONCE = "at once"
    LATER = "later"
    NEVER = "never"


def is_sure(support: Support) -> bool:
    """Return whether a sentence with this local check may pass without the model's verdict. Pure."""
    return support.holds and not support.doubtful


def is_judged(support: Support) -> bool:
    """Return whether a sentence with this local check is sent to the model, if there is one. Pure."""
    return _may_hold(support) and not support.better_quoted


def is_quoted(support: Support) -> bool:
    """Return whether a sentence with this local check is replaced by a quotation of its passage. Pure."""
    return _may_hold(support) and support.better_quoted


def _may_hold(support: Support) -> bool:
    return not support.verbatim and (support.holds or support.appealable)


@dataclass(frozen=True, slots=True)
class WithheldSentence:
    text: str
    reason: str


Exists = Callable[[str, str], Awaitable[bool]]
"""Returns whether a document, by its corpus and key, still exists."""


@dataclass(kw_only=True)
class Gate:
    """The gate of one turn; its methods `say` and `judge` go into the kit."""

    found: Mapping[str, Hit]  # by passage id
    supports: Supports
    tell: Callable[[Event], None]
    verify: Verify | None = None
    exists: Exists | None = None  # None: no document is removed while the turn runs
    asked: Sequence[str] = ()  # texts of the conversation, which a sentence may repeat
    _rulings: dict[tuple[str, tuple[Evidence, ...]], asyncio.Task[CheckedClaim | str]] = field(
        default_factory=dict, init=False
    )
    _replaced_by: dict[tuple[str, tuple[Evidence, ...]], Replacement] = field(default_factory=dict, init=False)
    _checking: int = field(default=0, init=False)
    _whole: bool = field(default=False, init=False)
    _said: list[CitedSentence] = field(default_factory=list, init=False)
    _claims: list[CheckedClaim] = field(default_factory=list, init=False)
    _withheld: list[WithheldSentence] = field(default_factory=list, init=False)
    any_refused: bool = field(default=False, init=False)  # by `judge`

    @property
    def withheld(self) -> tuple[WithheldSentence, ...]:
        return tuple(self._withheld)

    @property
    def only_quotes(self) -> bool:
        """Return whether a sentence was withheld, and all that were said are quotations."""
        passages = ([piece.passage for piece in sentence.evidence] for sentence in self._said)
        pairs = zip(self._said, passages, strict=True)
        return bool(self._withheld) and all(find_verbatim_passage(one.text, cited) for one, cited in pairs)

    @property
    def spoken(self) -> tuple[AnsweredSentence, ...]:
        """The sentences that passed, numbered as they were shown."""
        return footnotes.number_footnotes(self._said)[0]

    async def judge(self, sentence: CitedSentence, before: str = "") -> bool:
        """Judge a sentence before it is said, without showing it; return whether it will pass."""
        refused = bool(_find_fault(sentence, self.found)) or isinstance(await self._rule(sentence, before), str)
        self.any_refused = self.any_refused or refused
        return not refused

    def replaced_by(self, sentence: CitedSentence) -> Replacement:
        """Return what may be said in place of a withheld sentence."""
        return self._replaced_by.get((sentence.text, sentence.evidence), "notes")

    def end_draft(self) -> None:
        self._whole = True

    def _coming(self) -> Coming:
        if self._checking:
            return Coming.AT_ONCE
        return Coming.NEVER if self._whole else Coming.LATER

    async def say(self, sentence: CitedSentence) -> bool:
        """Let a sentence through if passages found in this turn support it; return whether it passed."""
        ruling = _find_fault(sentence, self.found) or await self._rule(sentence)
        if isinstance(ruling, str):
            withheld = WithheldSentence(sentence.text, ruling)
            self._withheld += [withheld] * (withheld not in self._withheld)
            log.info("sentences withheld in this turn: %d", len(self._withheld))  # their text is only recorded
            return False
        self._claims.append(ruling)
        self._said.append(sentence)
        self.tell(SentencePassed(footnotes.number_footnotes(self._said)[0][-1]))
        return True

    async def _rule(self, sentence: CitedSentence, before: str = "") -> CheckedClaim | str:
        """Return a sentence's checked claim, or the reason for withholding it. Each sentence is checked once."""
        key = (sentence.text, sentence.evidence)
        if key not in self._rulings or self._rulings[key].cancelled():
            self._rulings[key] = asyncio.ensure_future(self._check(sentence, before, len(self._rulings)))
        return await self._rulings[key]

    async def _check(self, sentence: CitedSentence, before: str, place: int) -> CheckedClaim | str:
        self._checking += 1
        try:
            support = await self.supports(sentence.text, sentence.evidence, asked=self.asked)
            if (support.holds or support.appealable) and await self._cites_removed(sentence.evidence):
                return REMOVED
        finally:
            self._checking -= 1
        reasons = " ".join(support.reasons)
        cited = tuple(dict.fromkeys(evidence.passage.id for evidence in sentence.evidence))
        claim = Claim(sentence.text, origin="retrieved")
        local = CheckedClaim(claim, Verdict.SUPPORTS, cited, reasons, because=support.because)
        if self.verify and is_quoted(support):
            self._replaced_by[sentence.text, sentence.evidence] = "quotation"
            return f"{reasons} A quotation may replace it."
        if self.verify and is_judged(support):
            try:
                checked = await self.verify(
                    sentence.text, sentence.evidence, coming=self._coming, before=before, place=place
                )
            except PipelineError as error:
                return local if is_sure(support) else f"{reasons} It could not be verified: {error}"
            if not checked or checked.verdict is Verdict.SUPPORTS:
                return checked or f"{reasons} No sentence of the passages can decide it."
            verb = "refute" if checked.verdict is Verdict.REFUTES else "do not confirm"
            if verb == "refute":
                self._replaced_by[sentence.text, sentence.evidence] = "nothing"
            return f"The model finds that the passages {verb} it: {checked.reasoning or reasons}"
        return local if is_sure(support) else reasons or "Its passages do not support it."

    async def _cites_removed(self, evidence: Sequence[Evidence]) -> bool:
        """Return whether a cited document was removed since the search; one that was only updated may be cited."""
        documents = dict.fromkeys((part.document.corpus, part.document.key) for part in evidence)
        return self.exists is not None and not all([await self.exists(*document) for document in documents])

    def quote(self, evidence: Evidence) -> bool:
        """Show a quotation, which is not part of the answer, until a sentence is said; return whether it is shown."""
        if self._said:
            return False
        fault = _find_evidence_fault(evidence, self.found)
        if fault:
            log.warning("quotation rejected: %s", fault)
            return False
        self.tell(PageQuoted(evidence))
        return True

    def answer(self, status: Status, *, nearest: Sequence[Hit] = (), claims: Sequence[CheckedClaim] = ()) -> Answer:
        """Assemble the answer of a turn that ended with `status`.

        A turn without sentences becomes an abstention. Only abstentions use `nearest`. `claims` are the model's
        verified claims, whatever the verdict: the record stores them, but no channel shows their text.
        """
        if status is Status.ANSWERED and not self._said:
            status = Status.ABSTAINED
        withheld = len(self._withheld)
        if status is not Status.ANSWERED:
            pages = tuple(nearest) if status is Status.ABSTAINED else ()
            return Answer(status, claims=tuple(claims), nearest=pages, withheld=withheld)
        sentences, citations = footnotes.number_footnotes(self._said)
        cited = {citation.passage_id for citation in citations}
        quotable = [key for key, how in self._replaced_by.items() if how == "quotation"]
        quoted = {text for text, pieces in quotable if any(piece.passage.id in cited for piece in pieces)}
        withheld = sum(sentence.text not in quoted for sentence in self._withheld)  # quoted ones are not missing
        return Answer(status, sentences, citations, claims=(*claims, *self._claims), withheld=withheld)


def _find_fault(sentence: CitedSentence, found: Mapping[str, Hit]) -> str:
    """Return what is wrong with a sentence's form or evidence; empty if nothing is."""
    if not sentence.text.strip():
        return "It has no text."
    if not sentence.evidence:
        return "It cites nothing."
    if not any(footnotes.is_own_note(sentence.note, evidence) for evidence in sentence.evidence):
        return "Its note does not name its source."
    passages = [evidence.passage for evidence in sentence.evidence]
    if not find_verbatim_passage(sentence.text, passages) and markup.clean_markup(sentence.text) != sentence.text:
        return "It has a link, an image or a mention that its passages do not have."
    return next(filter(None, (_find_evidence_fault(evidence, found) for evidence in sentence.evidence)), "")


def _find_evidence_fault(evidence: Evidence, found: Mapping[str, Hit]) -> str:
    hit = found.get(evidence.passage.id)
    if hit is None:
        return f"Passage {evidence.passage.id} was not retrieved in this turn."
    if evidence.passage != hit.passage or evidence.document != hit.document:
        return f"Passage {evidence.passage.id} is not as it was retrieved."
    start, end = evidence.span
    if not 0 <= start < end <= len(hit.passage.text):
        return f"The span {evidence.span} does not lie in passage {evidence.passage.id}."
    if hit.passage.text[start:end] != evidence.text:
        return f"The evidence is not the text at {evidence.span} in passage {evidence.passage.id}."
    return ""
