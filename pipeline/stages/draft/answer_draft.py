"""Stages 6 and 7: draft an answer over the findings, refine it, and send its sentences through the gate."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from pipeline.errors import PipelineError, ReplyBroken
from pipeline.kit import Kit
from pipeline.replies import footnotes
from pipeline.replies.cited_sentences import MarkedSentence, cite_sentence
from pipeline.replies.markup import clean_markup
from pipeline.replies.stage_replies import DraftSplitter, feedback_format
from pipeline.stages.concurrency import capture_outcome, close_stream, open_task_group, replay_values
from pipeline.stages.findings import SourcedFinding, bind_subjects, find_disagreeing, has_same_words
from pipeline.stages.turn_context import TurnContext
from pipeline.types import CitedSentence, DraftStarted
from storage.language.words import content_terms
from storage.types import Evidence


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
    """Yield the sentences of a reply over numbered findings; none where the model finds that none of them helps.

    A `refined` draft is asked to be at once what refinement would make of it; a student's always is. `refused` is how
    an earlier one began, which the notes do not say; with `feedback`, all of an earlier one, and what it lacks. Where
    `more` findings may come, none helps that leaves out the main thing.
    Raises `UnreadableReply`, `ModelUnavailable` and `BudgetExceeded`.
    """
    kit.tell(DraftStarted(len(findings)))
    template, splitter = "answer" if refined or kit.limits.student else "draft", DraftSplitter(len(findings))
    facts = {"talk": context.talk, "findings": tuple(findings), "language": context.language}
    facts |= {"refused": refused, "feedback": feedback, "more": more}
    async with close_stream(kit.stream(template, splitter, stage="draft", **facts)) as sentences:
        async for sentence in sentences:
            yield sentence


async def collect_draft(
    context: TurnContext,
    findings: Sequence[SourcedFinding],
    kit: Kit,
    *,
    refined: bool = False,
    refused: str = "",
    feedback: str = "",
) -> tuple[MarkedSentence, ...]:
    """Return all sentences of a draft; as none is said yet, a draft that breaks off is asked for once more."""
    draft = partial(stream_draft, context, findings, kit, refined=refined, refused=refused, feedback=feedback)
    try:
        return tuple([sentence async for sentence in draft()])
    except ReplyBroken:
        return tuple([sentence async for sentence in draft()])


async def stream_refinement(
    context: TurnContext, drafted: Sequence[MarkedSentence], findings: Sequence[SourcedFinding], kit: Kit
) -> AsyncIterator[MarkedSentence]:
    """Yield the sentences of a better reply; none where the draft cannot be made better, or nothing came of it.

    It may add nothing: what it says stands on the same findings, and the gate holds each sentence against them.
    """
    text, begun = format_draft(drafted), False
    try:
        feedback = await kit.ask("feedback", feedback_format(), stage="refine", talk=context.talk, draft=text)
        if feedback.good:
            return
        facts = {"talk": context.talk, "draft": text, "feedback": feedback}
        refined = kit.stream("refine", DraftSplitter(len(findings)), stage="refine", **facts)
        async with close_stream(refined) as sentences:
            async for sentence in sentences:
                begun = True
                yield sentence
    except PipelineError:
        if begun:
            raise


def format_draft(sentences: Sequence[MarkedSentence]) -> str:
    """Return sentences as a model writes them: the numbers in brackets before the full stop."""
    written = []
    for sentence in sentences:
        marks = "".join(f"[{number}]" for number in sentence.numbers)
        body = sentence.text.rstrip(".!?。")
        written.append(f"{body} {marks}{sentence.text[len(body) :]}" if marks else sentence.text)
    return " ".join(written)


async def say_draft(
    context: TurnContext,
    findings: Sequence[SourcedFinding],
    kit: Kit,
    *,
    refined: bool = False,
    shown: Sequence[Evidence] = (),
) -> bool:
    """Draft a reply and say it; where its first sentence is withheld, draft it once more without.

    Return whether a sentence left; where all are withheld, what was `shown` meanwhile stays. What comes first
    answers: without it the rest often says the contrary. Raises as `stream_draft` does.
    """
    said, came = await ReplySpeaker(context, findings, (), kit).say_drafts(
        partial(stream_draft, context, findings, kit, refined=refined)
    )
    return said or await say_shown(shown if came else (), kit)


async def say_collected(
    context: TurnContext, drafted: Sequence[MarkedSentence], findings: Sequence[SourcedFinding], kit: Kit
) -> bool:
    """Say a draft that was collected, in the place of what is withheld what it was made of; return whether any left."""
    speaker = ReplySpeaker(context, findings, (), kit)
    try:
        said, _ = await _say_stream(replay_values(tuple(drafted)), speaker, kit)
    except _BeginningRefused as refusal:
        said, _ = await _say_stream(replay_values(tuple(drafted[1:])), speaker, kit, refused=refusal.sentence)
    return said


async def say_refined(
    context: TurnContext,
    drafted: Sequence[MarkedSentence],
    findings: Sequence[SourcedFinding],
    kit: Kit,
    *,
    shown: Sequence[Evidence] = (),
) -> bool:
    """Refine a draft and say what comes of it, or else the draft; where it begins wrongly in both, draft once more.

    In the place of a sentence that is withheld stand those of the draft that it refines. Raises as `stream_draft` does.
    """
    redraft = partial(stream_draft, context, findings, kit)
    refined = stream_refinement(context, drafted, findings, kit)
    said, came = await _say_or_redraft(refined, ReplySpeaker(context, findings, drafted, kit), kit, redraft)
    if not came:
        unrefined = ReplySpeaker(context, findings, (), kit)
        said, came = await _say_or_redraft(replay_values(tuple(drafted)), unrefined, kit, redraft)
    return said or await say_shown(shown if came else (), kit)


async def _say_or_redraft(
    sentences: AsyncIterator[MarkedSentence],
    speaker: "ReplySpeaker",
    kit: Kit,
    redraft: Callable[..., AsyncIterator[MarkedSentence]],
) -> tuple[bool, bool]:
    """Say sentences, or others where the first is withheld; return whether one left, and whether any came."""
    try:
        return await _say_stream(sentences, speaker, kit)
    except _BeginningRefused as refusal:
        try:
            said, _ = await _say_stream(redraft(refused=refusal.sentence.text), speaker, kit, refused=refusal.sentence)
        except PipelineError:
            said = await speaker.replace(refusal.sentence)
        return said, True


async def say_shown(shown: Sequence[Evidence], kit: Kit) -> bool:
    said = [await kit.say(CitedSentence(one.text, (one,))) for one in shown if not _has_markup(one.text)]
    return any(said)


def _has_markup(text: str) -> bool:
    """Return whether a text has links, images or mentions, even within code."""
    bare = text.replace("`", "")
    return clean_markup(bare) != bare


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
) -> tuple[bool, bool]:
    """Send sentences through the gate in their order, each judged while the next is written.

    In the place of one that is withheld stands what it was made of. Where the sentences break off, those that came are
    said before the error is raised. Return whether one left, and whether any came. Where neither the first sentence nor
    its draft is said, `_BeginningRefused` is raised, unless these stand in the place of one that was `refused`: where
    none of them cites its notes, those come first, as without what they say the rest often says the contrary.
    """
    said, came = False, False
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
        held = deque[MarkedSentence | None]()
        if refused:
            led, held = await _hold_until_led(arrived, refused)
            said = not led and len(held) > 1 and await speaker.lead_in(refused)
        while sentence := held.popleft() if held else await arrived.get():
            written = await speaker.say_as_written(sentence) or await speaker.say_quoted(sentence)
            if not (refused or came or written or await speaker.say_drafted(sentence)):
                raise _BeginningRefused(sentence)  # what else was written ends with the group
            said, came = written or await speaker.replace(sentence) or said, True
        if fault := await reading:
            raise fault
    return said, came


async def _hold_until_led(
    arrived: asyncio.Queue[MarkedSentence | None], refused: MarkedSentence
) -> tuple[bool, deque[MarkedSentence | None]]:
    """Return whether a sentence comes that cites a note of one that was refused, and all that came until then."""
    held = deque[MarkedSentence | None]()
    while sentence := await arrived.get():
        held.append(sentence)
        if not (sentence.borrowed or sentence.maimed) and set(sentence.numbers) & set(refused.numbers):
            return True, held
    held.append(None)
    return False, held


MAX_LEADING = 2  # notes of a refused sentence that are said before a new draft that cites none of them


class ReplySpeaker:
    """Says the sentences of one reply, and in the place of one that is withheld what it was made of."""

    def __init__(
        self, context: TurnContext, findings: Sequence[SourcedFinding], drafted: Sequence[MarkedSentence], kit: Kit
    ) -> None:
        self._annotator = SentenceAnnotator(context, findings)
        self._findings = findings
        self._drafted = drafted
        self._kit = kit
        self._said: list[CitedSentence] = []
        self._replaced: list[CitedSentence] = []  # those said in the place of others

    def cite(self, marked: MarkedSentence) -> CitedSentence:
        return self._annotator.cite(marked)

    async def say_drafts(self, draft: Callable[..., AsyncIterator[MarkedSentence]]) -> tuple[bool, bool]:
        """Say a draft, or another where its first sentence is withheld; return whether one left, and whether any came.

        `draft` takes as `refused` how the one before began.
        """
        return await _say_or_redraft(draft(), self, self._kit, draft)

    async def say_more(self, sentences: Iterable[MarkedSentence], findings: Sequence[SourcedFinding]) -> bool:
        """Say what continues the reply over other findings, as far as it was not said; return whether any left."""
        self._annotator, self._findings = self._annotator.continued(findings), findings
        said = False
        for sentence in sentences:
            known = any(has_same_words(sentence.text, one.text) for one in self._said)
            passed = known or await self.say_as_written(sentence) or await self.say_quoted(sentence)
            said = passed or await self.replace(sentence) or said
        return said

    async def say_as_written(self, marked: MarkedSentence) -> bool:
        sentence = self._annotator.annotate(marked)
        return is_repeated(sentence, self._replaced) or await self._pass(sentence)

    async def say_quoted(self, marked: MarkedSentence) -> bool:
        """Say what a sentence was made of, if that is better than the sentence; return whether any of it is said."""
        better = self._kit.prefers_quotation(self._annotator.cite(marked))
        return better and await self.replace(replace(marked, borrowed=False))

    async def replace(self, marked: MarkedSentence) -> bool:
        """Say what a sentence was made of; return whether any of it is said by now."""
        covered = await self.say_drafted(marked)
        # A sentence without marks of its own is followed by the one whose notes it was tried against.
        left = () if marked.maimed or marked.borrowed else sorted(set(marked.numbers) - covered)
        said = bool(covered)
        for number in left:
            note = self._findings[number - 1]
            first = MarkedSentence(note.text, (number,), paragraph=marked.paragraph and not said)
            if await self._put(self._annotator.annotate(first)):
                said = True
                continue
            for subject in bind_subjects(note.evidence):
                quote = self._annotator.annotate(replace(first, text=subject.text))
                said = await self._put(replace(quote, evidence=(subject,))) or said
        return said

    async def lead_in(self, refused: MarkedSentence) -> bool:
        """Say the notes of a sentence that was refused before what is written anew; return whether any is said."""
        return await self.replace(replace(refused, numbers=refused.numbers[:MAX_LEADING], borrowed=False))

    async def say_drafted(self, marked: MarkedSentence) -> set[int]:
        """Say what a sentence refines; return the numbers of the notes that are said by it."""
        covered = set[int]()
        for other in find_counterparts(marked, self._drafted):
            paragraph = marked.paragraph and not covered
            if await self._put(self._annotator.annotate(replace(other, paragraph=paragraph))):
                covered.update(other.numbers)
        return covered

    async def _put(self, sentence: CitedSentence) -> bool:
        """Say something in another's place, unless that is said already; return whether it is by now.

        A quotation may have links and mentions; what was written as an answer may not bring them.
        """
        left = self._drop_beginning(sentence)
        if any(is_repeated(one, self._said, least=MOSTLY_SAID) for one in (sentence, left)):
            return True
        sentence = left
        if _has_markup(sentence.text):
            return False
        passed = await self._pass(sentence)
        self._replaced += [sentence] * passed
        return passed

    def _drop_beginning(self, sentence: CitedSentence) -> CitedSentence:
        """Return a note without whom it means before its pronoun, if that is what was said last."""
        last = self._said[-1].text if self._said else ""
        rest = sentence.text.removeprefix(last)
        return replace(sentence, text=rest.lstrip()) if last and rest[:1].isspace() and rest.strip() else sentence

    async def _pass(self, sentence: CitedSentence) -> bool:
        passed = await self._kit.say(sentence)
        if passed:
            self._said.append(sentence)
            self._annotator.note_named(sentence)
        return passed


def find_counterparts(marked: MarkedSentence, drafted: Sequence[MarkedSentence]) -> tuple[MarkedSentence, ...]:
    """Return what a refined sentence was made of: the most alike of the draft's, until all that it cites is cited."""
    wanted, left, found = set(content_terms(marked.text)), set(marked.numbers), list[MarkedSentence]()
    others = [one for one in drafted if one.text != marked.text]
    while near := [one for one in others if left & set(one.numbers)]:
        found.append(max(near, key=lambda one: len(wanted & set(content_terms(one.text)))))
        left -= set(found[-1].numbers)
    return tuple(other for other in others if other in found)


MOSTLY_SAID = 0.6  # the share of a note's words from which on nobody needs to hear the rest of it


def is_repeated(sentence: CitedSentence, said: Sequence[CitedSentence], least: float = 1.0) -> bool:
    """Return whether at least such a share of a sentence's words was said before of its passages, or all of it."""
    if any(one.text == sentence.text for one in said):
        return True
    terms, passages = set(content_terms(sentence.text)), {one.passage.id for one in sentence.evidence}
    before = (one.text for one in said if passages <= {piece.passage.id for piece in one.evidence})
    known = set(content_terms(" ".join(before)))
    return bool(terms) and len(terms & known) >= least * len(terms)


class SentenceAnnotator:
    """Attaches evidence and notes to sentences; remembers which pages were named already."""

    def __init__(self, context: TurnContext, findings: Sequence[SourcedFinding]) -> None:
        self._context = context
        self._offered = [finding.evidence for finding in findings]
        self._rivals = frozenset(place + 1 for place in find_disagreeing(findings))
        self._named: set[str] = set()

    def continued(self, findings: Sequence[SourcedFinding]) -> "SentenceAnnotator":
        """Return one for more of the same reply, over other findings."""
        more = SentenceAnnotator(self._context, findings)
        more._named |= self._named
        return more

    def cite(self, marked: MarkedSentence) -> CitedSentence:
        return cite_sentence(marked, self._offered)

    def annotate(self, marked: MarkedSentence) -> CitedSentence:
        """Return a sentence with its evidence, and a note if its sources disagree or speak another language."""
        sentence = self.cite(marked)
        rival = next((number for number in marked.numbers if number in self._rivals), None)
        if rival is not None:
            return replace(sentence, note=footnotes.write_dated_note(self._offered[rival - 1][0].document))
        document = next((one.document for one in sentence.evidence), None)
        asker = self._context.asker_language
        foreign = document and asker and document.language not in {"", asker}
        if document and foreign and document.key not in self._named:
            return replace(sentence, note=footnotes.write_language_note(document))
        return sentence

    def note_named(self, sentence: CitedSentence) -> None:
        """Remember that the page of a sentence's note was named, as the sentence is said."""
        if sentence.note:
            self._named.add(sentence.evidence[0].document.key)
