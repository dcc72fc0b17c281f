"""Stages 6 and 7: draft an answer over the findings, refine it, and send its sentences through the gate."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pipeline.errors import PipelineError, ReplyBroken
from pipeline.extraction.replacement import denies, find_answering, is_said
from pipeline.kit import Kit
from pipeline.replies import footnotes
from pipeline.replies.cited_sentences import MarkedSentence, cite_sentence, format_draft
from pipeline.replies.markup import clean_markup
from pipeline.replies.stage_replies import DraftSplitter, feedback_format
from pipeline.stages.concurrency import capture_outcome, close_stream, open_task_group, replay_values
from pipeline.stages.findings import SourcedFinding, find_disagreeing, has_same_words
from pipeline.stages.turn_context import TurnContext
from pipeline.support.support_check import lead_quotation
from pipeline.types import CitedSentence, DraftStarted
from storage.language.detection import detect_language
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms


async def stream_draft(
    context: TurnContext,
    findings: Sequence[SourcedFinding],
    kit: Kit,
    *,
    refined: bool = False,
    more: bool = False,
    refused: str = "",
    feedback: str = "",
) -> AsyncIterator[MarkedSentence]:
    """Yield the sentences of a reply over numbered findings; none if no finding helps.

    The prompt includes the criteria of refinement if the draft is `refined` or the model is distilled
    (`Limits.student`). `refused` is to be written anew: a whole earlier draft if `feedback` criticises it, else only
    its unsupported beginning. `more`: further findings may come, so findings without the main point do not count as
    helpful. Raises `UnreadableReply`, `ModelUnavailable` and `BudgetExceeded`.
    """
    kit.tell(DraftStarted(len(findings)))
    template = "answer" if refined or kit.limits.student else "draft"
    splitter = split_draft(context, findings)
    facts = {"talk": context.talk, "findings": tuple(findings), "language": context.language}
    facts |= {"refused": refused, "feedback": feedback, "more": more}
    async with close_stream(kit.stream(template, splitter, stage="draft", **facts)) as sentences:
        async for sentence in sentences:
            yield sentence


def list_spoken_languages(context: TurnContext, findings: Sequence[SourcedFinding]) -> frozenset[str]:
    """Return the languages that a reply may be in: the asker's and those of its notes; empty if the first is unsure."""
    noted = {finding.evidence[0].document.language for finding in findings}
    return frozenset({context.asker_language, *noted} if context.asker_language else ())


def split_draft(context: TurnContext, findings: Sequence[SourcedFinding]) -> DraftSplitter:
    texts = [finding.text for finding in findings]
    return DraftSplitter(len(findings), list_spoken_languages(context, findings), texts)


async def collect_draft(
    context: TurnContext,
    findings: Sequence[SourcedFinding],
    kit: Kit,
    *,
    refined: bool = False,
    refused: str = "",
    feedback: str = "",
) -> tuple[MarkedSentence, ...]:
    """Return all sentences of a draft. One that breaks off is requested once more, as nothing of it was said yet."""
    draft = partial(stream_draft, context, findings, kit, refined=refined, refused=refused, feedback=feedback)
    try:
        return tuple([sentence async for sentence in draft()])
    except ReplyBroken:
        return tuple([sentence async for sentence in draft()])


async def stream_refinement(
    context: TurnContext, drafted: Sequence[MarkedSentence], findings: Sequence[SourcedFinding], kit: Kit
) -> AsyncIterator[MarkedSentence]:
    """Yield the sentences of a refined reply over the same findings; none if the draft is good, or if this fails."""
    text, begun = format_draft(drafted), False
    try:
        feedback = await kit.ask("feedback", feedback_format(), stage="refine", talk=context.talk, draft=text)
        if feedback.good:
            return
        splitter = split_draft(context, findings)
        refined = kit.stream("refine", splitter, stage="refine", talk=context.talk, draft=text, feedback=feedback)
        async with close_stream(refined) as sentences:
            async for sentence in sentences:
                begun = True
                yield sentence
    except PipelineError:
        if begun:
            raise


async def say_draft(
    context: TurnContext,
    findings: Sequence[SourcedFinding],
    kit: Kit,
    *,
    refined: bool = False,
) -> bool:
    """Draft a reply and say it. If its first sentence is withheld, draft once more without that sentence.

    Return whether a sentence passed. The first sentence answers: without it the rest often says the contrary.
    """
    draft = partial(stream_draft, context, findings, kit, refined=refined)
    return (await ReplySpeaker(context, findings, (), kit).say_drafts(draft)).said


async def say_collected(
    context: TurnContext, drafted: Sequence[MarkedSentence], findings: Sequence[SourcedFinding], kit: Kit
) -> bool:
    """Say a draft that is complete, with notes in place of withheld sentences. Return whether a sentence passed."""
    speaker = ReplySpeaker(context, findings, (), kit)
    try:
        outcome = await _say_stream(replay_values(tuple(drafted)), speaker, kit)
    except _BeginningRefused as refusal:
        outcome = await _say_stream(replay_values(tuple(drafted[1:])), speaker, kit, refused=refusal.sentence)
    return outcome.said


async def say_refined(
    context: TurnContext,
    drafted: Sequence[MarkedSentence],
    findings: Sequence[SourcedFinding],
    kit: Kit,
) -> bool:
    """Refine a draft and say the result, or else the draft. If the first sentence is withheld, draft once more."""
    redraft = partial(stream_draft, context, findings, kit)
    refined = stream_refinement(context, drafted, findings, kit)
    outcome = await _say_or_redraft(refined, ReplySpeaker(context, findings, drafted, kit), kit, redraft)
    if not outcome.received:
        unrefined = ReplySpeaker(context, findings, (), kit)
        outcome = await _say_or_redraft(replay_values(tuple(drafted)), unrefined, kit, redraft)
    return outcome.said


@dataclass(frozen=True, slots=True)
class SpokenStream:
    """What became of a stream of sentences: whether one was said, and whether any was received."""

    said: bool
    received: bool


async def _say_or_redraft(
    sentences: AsyncIterator[MarkedSentence],
    speaker: "ReplySpeaker",
    kit: Kit,
    redraft: Callable[..., AsyncIterator[MarkedSentence]],
) -> SpokenStream:
    """Say these sentences. If the first one is withheld, say those of another draft instead."""
    try:
        return await _say_stream(sentences, speaker, kit)
    except _BeginningRefused as refusal:
        if kit.limits.one_call:
            return SpokenStream(said=False, received=True)
        again = redraft(refused=refusal.sentence.text)
        try:
            any_said = (await _say_stream(again, speaker, kit, refused=refusal.sentence)).said
        except PipelineError:
            any_said = await speaker.replace(refusal.sentence)
        return SpokenStream(any_said, received=True)


class _BeginningRefused(Exception):
    def __init__(self, sentence: MarkedSentence) -> None:
        super().__init__(sentence.text)
        self.sentence = sentence


async def _say_stream(
    sentences: AsyncIterator[MarkedSentence],
    speaker: "ReplySpeaker",
    kit: Kit,
    *,
    refused: MarkedSentence | None = None,
) -> SpokenStream:
    """Send sentences through the gate in order, judging each while the next is written.

    A withheld sentence is replaced by the draft's sentences that it refines, or by its notes. If the stream breaks off,
    the sentences so far are said before the error is raised.

    If neither the first sentence nor a replacement from the draft passes, `_BeginningRefused` is raised. For the next
    draft, the caller passes that sentence as `refused`. If no sentence of that draft cites its notes, the notes are
    said first, as without them the rest often says the contrary.
    """
    any_said = received = False
    arrived: asyncio.Queue[MarkedSentence | None] = asyncio.Queue()
    async with open_task_group() as group:

        async def read() -> None:
            before = ""
            try:
                async with close_stream(sentences):
                    async for sentence in sentences:
                        group.create_task(kit.judge(speaker.cite(sentence), before))
                        arrived.put_nowait(sentence)
                        before = sentence.text
            finally:
                kit.end_draft()
                arrived.put_nowait(None)

        reading = group.create_task(capture_outcome(read()))
        queued = deque[MarkedSentence | None]()
        if refused:
            cited, queued = await _hold_until_cited(arrived, refused)
            any_said = not cited and len(queued) > 1 and await speaker.replace(replace(refused, borrowed=False))
        while sentence := queued.popleft() if queued else await arrived.get():
            written = await speaker.say_as_written(sentence) or await speaker.say_quoted(sentence)
            if not (refused or received or written or await speaker.say_drafted(sentence)):
                raise _BeginningRefused(sentence)  # the group ends the rest of the draft
            any_said = written or await speaker.replace(sentence) or any_said
            received = True
        if fault := await reading:
            raise fault
    return SpokenStream(any_said, received)


async def _hold_until_cited(
    arrived: asyncio.Queue[MarkedSentence | None], refused: MarkedSentence
) -> tuple[bool, deque[MarkedSentence | None]]:
    """Wait until a sentence arrives that cites a note of the refused one; return whether it did, and all sentences."""
    queued = deque[MarkedSentence | None]()
    while sentence := await arrived.get():
        queued.append(sentence)
        if not (sentence.borrowed or sentence.incomplete) and set(sentence.numbers) & set(refused.numbers):
            return True, queued
    queued.append(None)
    return False, queued


class ReplySpeaker:
    """Says the sentences of one reply. In place of a withheld sentence, it says that of the draft, or the notes."""

    def __init__(
        self, context: TurnContext, findings: Sequence[SourcedFinding], drafted: Sequence[MarkedSentence], kit: Kit
    ) -> None:
        self._context = context
        self._annotator = SentenceAnnotator(context, findings)
        self._findings = findings
        self._answering: list[tuple[int, CitedSentence]] | None = None  # what may replace a sentence
        self._drafted = drafted
        self._kit = kit
        self._said: list[CitedSentence] = []
        self._replaced: list[CitedSentence] = []  # said instead of withheld ones

    def cite(self, marked: MarkedSentence) -> CitedSentence:
        return self._annotator.cite(marked)

    async def say_drafts(self, draft: Callable[..., AsyncIterator[MarkedSentence]]) -> SpokenStream:
        """Say a draft. If its first sentence is withheld, say another draft, which gets that sentence as `refused`."""
        return await _say_or_redraft(draft(), self, self._kit, draft)

    async def say_more(self, sentences: Iterable[MarkedSentence], findings: Sequence[SourcedFinding]) -> bool:
        """Continue the reply over other findings, without repetitions. Return whether a sentence passed."""
        self._annotator = self._annotator.continued(findings)
        self._findings, self._answering = findings, None
        any_said = False
        for sentence in sentences:
            known = any(has_same_words(sentence.text, earlier.text) for earlier in self._said)
            passed = known or await self.say_as_written(sentence) or await self.say_quoted(sentence)
            any_said = passed or await self.replace(sentence) or any_said
        return any_said

    async def say_as_written(self, marked: MarkedSentence) -> bool:
        sentence = self._annotator.annotate(marked)
        return is_repeated(sentence, self._replaced) or await self._pass(sentence)

    async def say_quoted(self, marked: MarkedSentence) -> bool:
        """Say the notes of a sentence that changes a fact of its passage. Return whether one passed."""
        better = self._kit.replaced_by(self.cite(marked)) == "quotation"
        return better and await self.replace(replace(marked, borrowed=False))

    async def replace(self, marked: MarkedSentence) -> bool:
        """Say the draft's sentences, or its best note that answers, in place of a withheld one; return whether any was.

        No note replaces a sentence that is refuted, or that borrows the marks of the one after it.
        """
        how, covered = self._kit.replaced_by(self.cite(marked)), await self.say_drafted(marked)
        if covered or marked.incomplete or marked.borrowed or how == "nothing":
            return covered
        first = how == "quotation" and not self._said  # the model takes it for the answer
        if first or self._answering is None:
            query, strict = self._context.search_query, not first
            self._answering = await find_answering(query, self._findings, self._kit.rerank, strict=strict)
        answering, self._answering = self._answering, None if first else self._answering
        agrees = marked.text[:3].casefold() == "yes"
        for number, quote in answering:
            if number not in marked.numbers:
                continue
            note = self._annotator.annotate(MarkedSentence(quote.text, (number,), paragraph=False)).note or quote.note
            kept = how == "quotation" and not denies(quote.text, "" if agrees else marked.text)
            led = lead_quotation(marked.text, quote.text, quote.evidence) if kept else ""
            for text in filter(None, (led, quote.text)):
                if await self._put(replace(quote, text=text, note=note, paragraph=marked.paragraph)):
                    return True
        return False

    async def say_drafted(self, marked: MarkedSentence) -> bool:
        """Say the draft's sentences that a withheld sentence refines; return whether any was said."""
        any_said = False
        for other in find_counterparts(marked, self._drafted):
            said = self._annotator.annotate(replace(other, paragraph=marked.paragraph and not any_said))
            any_said = await self._put(said) or any_said
        return any_said

    async def _put(self, sentence: CitedSentence) -> bool:
        """Say a replacement, and return whether it was said, now or before. One with links or mentions is rejected."""
        left = self._drop_beginning(sentence)
        repeated = is_repeated(sentence, self._said) or is_repeated(left, self._said, least=MOSTLY_SAID)
        if repeated or is_said(left.text, [earlier.text for earlier in self._said]):
            return True
        if clean_markup(bare := left.text.replace("`", "")) != bare:
            return False
        passed = await self._pass(left)
        self._replaced += [left] * passed
        return passed

    def _drop_beginning(self, sentence: CitedSentence) -> CitedSentence:
        """Return a quotation without its first sentence, which explains the second, if that was said just before."""
        spans, last = sentence_spans(sentence.text), [earlier.text for earlier in self._said[-1:]]
        first = sentence.text[slice(*spans[0])]
        known = len(spans) > 1 and sentence.evidence[0].text.startswith(first) and is_said(first, last, MOSTLY_SAID)
        return replace(sentence, text=sentence.text[spans[1][0] :]) if known else sentence

    async def _pass(self, sentence: CitedSentence) -> bool:
        passed = await self._kit.say(sentence)
        if passed:
            self._said.append(sentence)
            self._annotator.note_named(sentence)
        return passed


def find_counterparts(marked: MarkedSentence, drafted: Sequence[MarkedSentence]) -> tuple[MarkedSentence, ...]:
    """Return those sentences of the draft that cover the notes of this sentence; of several, the most similar."""
    terms, left, counterparts = set(content_terms(marked.text)), set(marked.numbers), list[MarkedSentence]()
    others = [sentence for sentence in drafted if sentence.text != marked.text]
    while near := [sentence for sentence in others if left & set(sentence.numbers)]:
        counterparts.append(max(near, key=lambda one: len(terms & set(content_terms(one.text)))))
        left -= set(counterparts[-1].numbers)
    return tuple(other for other in others if other in counterparts)


MOSTLY_SAID = 0.6  # the share of a note's words from which the rest need not be said


def is_repeated(sentence: CitedSentence, said: Sequence[CitedSentence], least: float = 1.0) -> bool:
    """Return whether a sentence, or the share `least` of its words with the same passages cited, was already said."""
    if any(earlier.text == sentence.text for earlier in said):
        return True
    terms, passages = set(content_terms(sentence.text)), {piece.passage.id for piece in sentence.evidence}
    before = (earlier.text for earlier in said if passages <= {piece.passage.id for piece in earlier.evidence})
    known = set(content_terms(" ".join(before)))
    return bool(terms) and len(terms & known) >= least * len(terms)


class SentenceAnnotator:
    """Attaches evidence and notes to sentences, and remembers which pages a note has already named."""

    def __init__(self, context: TurnContext, findings: Sequence[SourcedFinding]) -> None:
        self._context = context
        self._offered = [finding.evidence for finding in findings]
        self._rivals = frozenset(place + 1 for place in find_disagreeing(findings))
        self._named: set[str] = set()

    def continued(self, findings: Sequence[SourcedFinding]) -> "SentenceAnnotator":
        """Return an annotator for the same reply over other findings."""
        more = SentenceAnnotator(self._context, findings)
        more._named |= self._named
        return more

    def cite(self, marked: MarkedSentence) -> CitedSentence:
        return cite_sentence(marked, self._offered)

    def annotate(self, marked: MarkedSentence) -> CitedSentence:
        """Return a sentence with its evidence. It gets a note if its sources disagree, or quote another language."""
        sentence = self.cite(marked)
        rival = next((number for number in marked.numbers if number in self._rivals), None)
        if rival is not None:
            return replace(sentence, note=footnotes.write_dated_note(self._offered[rival - 1][0].document))
        document = next((piece.document for piece in sentence.evidence), None)
        asker = self._context.asker_language
        foreign = document and asker not in {"", document.language, detect_language(marked.text)} and document.language
        if document and foreign and document.key not in self._named:
            return replace(sentence, note=footnotes.write_language_note(document))
        return sentence

    def note_named(self, sentence: CitedSentence) -> None:
        """Remember the page that the note of a sentence names, once the sentence was said."""
        if sentence.note:
            self._named.add(sentence.evidence[0].document.key)
