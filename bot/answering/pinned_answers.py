"""Pin an answer to its question, and find the answer that is pinned to a question.

A pinned answer is shown again while the passages that it cites are unchanged, to askers who may read everything behind
its turn. The new question must be the same as the pinned one, word for word.
"""

import asyncio
import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from bot.access import find_forgotten_documents
from bot.answering.example_pool import FindForgotten
from bot.answering.turn_record import TurnRecord, read_turn_record
from bot.types import PinMark
from pipeline.gate import Gate, Recorder, Verify
from pipeline.kit import Kit, Supports
from pipeline.replies.cited_sentences import cite_sentence, split_sentences
from pipeline.stages.findings import collect_sentences
from pipeline.stages.question_analysis import depends_on_context
from pipeline.support.scorer import select_closest
from pipeline.types import CitedSentence, Conversation, Status
from storage.manifest import Manifest
from storage.record.proof.verification import QUOTE_JOIN
from storage.types import ApprovedExample, Document, DocumentId, EntryKind, Evidence, Hit, LogEntry, Passage, Span

Unpinnable = Literal["unknown", "check", "unanswered", "retracted", "follow_up", "forgotten", "changed", "empty"]
RecallPassages = Callable[[Collection[str], Collection[DocumentId]], Awaitable[Mapping[str, tuple[Passage, Document]]]]
"""Returns by id those of the passages that these documents contain now. Raises `StorageError`."""


class UnfitAnswer(Exception):
    """An answer cannot be pinned."""

    def __init__(self, reason: Unpinnable) -> None:
        super().__init__(reason)
        self.reason: Unpinnable = reason


class UnsupportedText(Exception):
    """The passages do not support a corrected text; `refused` has each refused sentence with the reason."""

    def __init__(self, refused: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(text for text, _ in refused))
        self.refused = tuple(refused)


@dataclass(frozen=True, slots=True)
class PinnedQuote:
    """A quotation that a sentence cites, valid while its passage has this hash."""

    passage_id: str
    hash: str
    span: Span


@dataclass(frozen=True, slots=True)
class PinnedSentence:
    text: str
    quotes: tuple[PinnedQuote, ...]
    note: str = ""
    paragraph: bool = False


@dataclass(frozen=True, slots=True)
class PinnedAnswer:
    turn_id: str
    question: str
    name: str  # who pinned it, by the name that askers see
    day: str  # the date of pinning, in ISO 8601
    sentences: tuple[PinnedSentence, ...]
    corpora: tuple[str, ...]  # the corpora behind its turn
    documents: tuple[DocumentId, ...]

    @property
    def mark(self) -> PinMark:
        return PinMark(self.turn_id, self.name, self.day)

    @property
    def passage_ids(self) -> frozenset[str]:
        return frozenset(quote.passage_id for sentence in self.sentences for quote in sentence.quotes)


@dataclass(frozen=True, slots=True)
class StandingAnswer:
    """A pinned answer that is still valid, with its passages."""

    pinned: PinnedAnswer
    hits: tuple[Hit, ...]
    sentences: tuple[CitedSentence, ...]


async def build_pinned(
    entries: Sequence[LogEntry],
    text: str,
    *,
    recall: RecallPassages,
    find_forgotten: FindForgotten,
    supports: Supports,
    verify: Verify | None = None,
    name: str,
    day: str,
) -> PinnedAnswer:
    """Build the pinned form of a turn's answer, or of a corrected `text` with citation numbers such as [1].

    Each sentence of a corrected text must pass the gate: the local check and, if one is configured, the model.

    Raises:
        UnfitAnswer: The answer cannot be pinned.
        UnsupportedText: The passages do not certainly support some sentences of the corrected text.
        StorageError: The passages cannot be looked up.
        ValueError: The record has an unknown format.
    """
    record = _require_fit(read_turn_record(entries))
    answer = record.result.answer if record.result else None
    citations = answer.citations if answer else ()
    if await find_forgotten(record.documents):
        raise UnfitAnswer("forgotten")
    ids = {citation.passage_id for citation in citations}
    passages = await recall(ids, {(citation.corpus, citation.document) for citation in citations})
    hashes = {key: passage.hash for key, (passage, _) in passages.items()}
    if any(hashes.get(citation.passage_id) != citation.passage_hash for citation in citations):
        raise UnfitAnswer("changed")
    offered = [_list_evidence(citation.quote, *passages[citation.passage_id]) for citation in citations]
    if text:
        whole = [collect_sentences([Hit(*passages[citation.passage_id], 1.0)]) for citation in citations]
        sentences = [_narrow_evidence(cite_sentence(draft, whole)) for draft in split_sentences(text, len(whole))]
        gate = _open_gate(passages, record.question, supports, verify)
        await _require_support(sentences, gate)
    else:
        sentences = [
            CitedSentence(
                sentence.text,
                tuple(piece for number in sentence.citations for piece in offered[number - 1]),
                sentence.note,
                sentence.paragraph,
            )
            for sentence in (answer.sentences if answer else ())
        ]
    if not sentences:
        raise UnfitAnswer("empty")
    pinned = tuple(
        PinnedSentence(
            sentence.text,
            tuple(PinnedQuote(piece.passage.id, piece.passage.hash, piece.span) for piece in sentence.evidence),
            sentence.note,
            sentence.paragraph,
        )
        for sentence in sentences
    )
    scope, documents = tuple(sorted(record.corpora)), tuple(sorted(record.documents))
    return PinnedAnswer(record.turn_id, record.question, name, day, pinned, scope, documents)


def _require_fit(record: TurnRecord | None) -> TurnRecord:
    reason: Unpinnable | None = None
    if record is None:
        raise UnfitAnswer("unknown")
    if record.task == "check":
        reason = "check"
    elif record.retracted:
        reason = "retracted"
    elif record.result is None or record.result.answer.status is not Status.ANSWERED:
        reason = "unanswered"
    elif depends_on_context(record.question, record.language):
        reason = "follow_up"
    if reason:
        raise UnfitAnswer(reason)
    return record


def _list_evidence(quote: str, passage: Passage, document: Document) -> tuple[Evidence, ...]:
    """Return a footnote's evidence. A quote may join parts of the passage; each of them is a piece of evidence."""
    pieces = (quote,) if quote in passage.text else quote.split(QUOTE_JOIN)
    starts = [(passage.text.find(piece), piece) for piece in pieces]
    return tuple(
        Evidence(piece, passage, document, (start, start + len(piece))) for start, piece in starts if start >= 0
    )


def _narrow_evidence(sentence: CitedSentence) -> CitedSentence:
    """Keep only the evidence closest to a sentence, but at least one piece of each passage that it cites."""
    by_passage = defaultdict[str, list[Evidence]](list)
    for piece in sentence.evidence:
        by_passage[piece.passage.id].append(piece)
    near = set(select_closest(sentence.text, [[piece.text for piece in sentence.evidence]])) if by_passage else set()
    narrowed = []
    for pieces in by_passage.values():
        (nearest, *_) = select_closest(sentence.text, [[piece.text for piece in pieces]])
        chosen = [piece for piece in pieces if piece.text in near]
        narrowed += chosen or [piece for piece in pieces if piece.text == nearest]
    return replace(sentence, evidence=tuple(narrowed))


def _open_gate(
    passages: Mapping[str, tuple[Passage, Document]], question: str, supports: Supports, verify: Verify | None
) -> Gate:
    found = {key: Hit(passage, document, 1.0) for key, (passage, document) in passages.items()}
    return Gate(found=found, supports=supports, tell=lambda _: None, verify=verify, asked=(question,))


async def _require_support(sentences: Sequence[CitedSentence], gate: Gate) -> None:
    gate.end_draft()
    before = ""
    for sentence in sentences:
        await gate.judge(sentence, before)
        await gate.say(sentence)
        before = sentence.text
    if gate.withheld:
        raise UnsupportedText([(sentence.text, sentence.reason) for sentence in gate.withheld])


def build_pin_entry(pinned: PinnedAnswer, by: str, state: str) -> LogEntry:
    """Return the record entry of a pin: who pinned it, in whose name, and the text."""
    text = " ".join(sentence.text for sentence in pinned.sentences)
    facts = {"what": "answer", "by": by, "where": "", "state": state, "name": pinned.name, "text": text}
    return LogEntry(pinned.turn_id, EntryKind.FEEDBACK, facts)


def read_pinned(example: ApprovedExample) -> PinnedAnswer | None:
    """Return a pinned answer; None if this version cannot read it."""
    try:
        return _adapter().validate_python(example.body)
    except ValidationError:
        return None


def encode_pinned(pinned: PinnedAnswer) -> Mapping[str, Any]:
    return asdict(pinned)


async def say_pinned(
    examples: Iterable[ApprovedExample],
    talk: Conversation,
    scope: Collection[str],
    manifest: Manifest,
    kit: Kit,
    recorder: Recorder,
) -> PinMark | None:
    """Show the answer that is pinned to the question if all its sentences pass the gate; return its mark, or None.

    `examples` are all pinned answers.
    """
    standing = await find_pinned(examples, talk, scope, partial(find_forgotten_documents, manifest), manifest.recall)
    if standing is None:
        return None
    await recorder.add(talk.question.text, standing.hits)
    before = ("", *(sentence.text for sentence in standing.sentences))
    if not all(await asyncio.gather(*map(kit.judge, standing.sentences, before))):
        return None
    passed = [await kit.say(sentence) for sentence in standing.sentences]
    return standing.pinned.mark if any(passed) else None


async def find_pinned(
    examples: Iterable[ApprovedExample],
    talk: Conversation,
    scope: Collection[str],
    find_forgotten: FindForgotten,
    recall: RecallPassages,
) -> StandingAnswer | None:
    """Return the first valid answer that is pinned to the conversation's question and readable in `scope`.

    Raises `StorageError`.
    """
    asked = normalize_question(talk.question.text)
    for pinned in filter(None, map(read_pinned, examples)):
        if normalize_question(pinned.question) != asked or not set(pinned.corpora) <= set(scope):
            continue
        if not await find_forgotten(pinned.documents) and (standing := await restore(pinned, scope, recall)):
            return standing
    return None


async def restore(pinned: PinnedAnswer, scope: Collection[str], recall: RecallPassages) -> StandingAnswer | None:
    """Return a pinned answer with its passages; None if a passage was deleted, changed, or is outside the scope."""
    passages = await recall(pinned.passage_ids, [document for document in pinned.documents if document[0] in scope])
    quotes = [quote for sentence in pinned.sentences for quote in sentence.quotes]
    hashes = {key: passage.hash for key, (passage, _) in passages.items()}
    if any(hashes.get(quote.passage_id) != quote.hash for quote in quotes):
        return None
    sentences = tuple(
        CitedSentence(
            sentence.text,
            tuple(_cite(quote, *passages[quote.passage_id]) for quote in sentence.quotes),
            sentence.note,
            sentence.paragraph,
        )
        for sentence in pinned.sentences
    )
    return StandingAnswer(pinned, tuple(Hit(*passages[key], 1.0) for key in sorted(passages)), sentences)


def _cite(quote: PinnedQuote, passage: Passage, document: Document) -> Evidence:
    start, end = quote.span
    return Evidence(passage.text[start:end], passage, document, quote.span)


def normalize_question(text: str) -> str:
    """Normalise a question for comparison: spaces, final punctuation, and case except in acronyms; pure."""
    plain = unicodedata.normalize("NFKC", text).strip(" \t\r\n?!.…。؟")
    capitals = plain.isupper()
    words = (word if len(word) > 1 and word.isupper() and not capitals else word.casefold() for word in plain.split())
    return " ".join(words)


@cache
def _adapter() -> TypeAdapter[PinnedAnswer]:
    return TypeAdapter(PinnedAnswer)
