"""Stages 6 and 7: draft an answer over the findings, refine it, and send its sentences through the gate."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from pipeline.errors import PipelineError, ReplyBroken
from pipeline.kit import Kit
from pipeline.replies import footnotes
from pipeline.replies.cited_sentences import MarkedSentence, cite_sentence
from pipeline.replies.stage_replies import FEEDBACK, DraftSplitter
from pipeline.stages.concurrency import close_stream
from pipeline.stages.passage_retrieval import SourcedFinding, find_disagreeing
from pipeline.stages.turn_context import TurnContext
from pipeline.types import CitedSentence, DraftStarted


async def stream_draft(
    context: TurnContext, findings: Sequence[SourcedFinding], kit: Kit, *, refined: bool = False
) -> AsyncIterator[MarkedSentence]:
    """Yield the sentences of a reply over numbered findings; none where the model finds that none of them helps.

    A `refined` draft is asked to be at once what refinement would make of it; a student's always is.
    Raises `UnreadableReply`, `ModelUnavailable` and `BudgetExceeded`.
    """
    kit.tell(DraftStarted(len(findings)))
    template, splitter = "answer" if refined or kit.limits.student else "draft", DraftSplitter(len(findings))
    facts = {"talk": context.talk, "findings": tuple(findings), "language": context.language}
    async with close_stream(kit.stream(template, splitter, stage="draft", **facts)) as sentences:
        async for sentence in sentences:
            yield sentence


async def collect_draft(
    context: TurnContext, findings: Sequence[SourcedFinding], kit: Kit
) -> tuple[MarkedSentence, ...]:
    """Return all sentences of a draft; as none is said yet, a draft that breaks off is asked for once more."""
    try:
        return tuple([sentence async for sentence in stream_draft(context, findings, kit)])
    except ReplyBroken:
        return tuple([sentence async for sentence in stream_draft(context, findings, kit)])


async def stream_refinement(
    context: TurnContext, drafted: Sequence[MarkedSentence], findings: Sequence[SourcedFinding], kit: Kit
) -> AsyncIterator[MarkedSentence]:
    """Yield the sentences of a better reply; none where the draft cannot be made better, or nothing came of it.

    It may add nothing: what it says stands on the same findings, and the gate holds each sentence against them.
    """
    text, begun = format_draft(drafted), False
    try:
        feedback = await kit.ask("feedback", FEEDBACK, stage="refine", talk=context.talk, draft=text)
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


async def say_all(
    sentences: AsyncIterator[MarkedSentence], findings: Sequence[SourcedFinding], context: TurnContext, kit: Kit
) -> bool:
    """Send sentences through the gate as they come; return whether one was let through."""
    notebook, said = SentenceAnnotator(context, findings), False
    async with close_stream(sentences):
        async for sentence in sentences:
            passed = await kit.say(notebook.annotate(sentence))
            said = said or passed
    return said


class SentenceAnnotator:
    """Attaches evidence and notes to sentences; remembers which pages were named already."""

    def __init__(self, context: TurnContext, findings: Sequence[SourcedFinding]) -> None:
        self._asker_language = context.asker_language
        self._offered = [finding.evidence for finding in findings]
        self._rivals = frozenset(place + 1 for place in find_disagreeing(findings))
        self._named: set[str] = set()

    def annotate(self, marked: MarkedSentence) -> CitedSentence:
        """Return a sentence with its evidence, and a note if its sources disagree or speak another language."""
        sentence = cite_sentence(marked, self._offered)
        rival = next((number for number in marked.numbers if number in self._rivals), None)
        if rival is not None:
            return replace(sentence, note=footnotes.write_dated_note(self._offered[rival - 1][0].document))
        document = next((one.document for one in sentence.evidence), None)
        foreign = document and self._asker_language and document.language not in {"", self._asker_language}
        if document and foreign and document.key not in self._named:
            self._named.add(document.key)
            return replace(sentence, note=footnotes.write_language_note(document))
        return sentence
