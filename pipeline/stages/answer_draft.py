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
from storage.types import Document


async def stream_draft(
    scene: TurnContext, findings: Sequence[SourcedFinding], kit: Kit, *, refined: bool = False
) -> AsyncIterator[MarkedSentence]:
    """Yield the sentences of a reply over numbered findings; none where the model finds that none of them helps.

    A `refined` draft is asked to be at once what refinement would make of it; a student's always is.

    Raises:
        UnreadableReply: twice no sentence cited anything.
        ModelUnavailable, BudgetExceeded: as `pipeline.model.LLM` says.
    """
    kit.tell(DraftStarted(len(findings)))
    template, splitter = "answer" if refined or kit.limits.student else "draft", DraftSplitter(len(findings))
    facts = {"talk": scene.talk, "findings": tuple(findings), "language": scene.language}
    async with close_stream(kit.stream(template, splitter, stage="draft", **facts)) as sentences:
        async for sentence in sentences:
            yield sentence


async def collect_draft(scene: TurnContext, findings: Sequence[SourcedFinding], kit: Kit) -> tuple[MarkedSentence, ...]:
    """Return all sentences of a draft; as none of them is said yet, one that breaks is asked for again, once.

    Raises as `draft` does.
    """
    try:
        return tuple([sentence async for sentence in stream_draft(scene, findings, kit)])
    except ReplyBroken:
        return tuple([sentence async for sentence in stream_draft(scene, findings, kit)])


async def stream_refinement(
    scene: TurnContext, drafted: Sequence[MarkedSentence], findings: Sequence[SourcedFinding], kit: Kit
) -> AsyncIterator[MarkedSentence]:
    """Yield the sentences of a better reply; none where the draft cannot be made better, or nothing came of it.

    It may add nothing: what it says stands on the same findings, and the gate holds each sentence against them.
    """
    text, begun = format_draft(drafted), False
    try:
        feedback = await kit.ask("feedback", FEEDBACK, stage="refine", talk=scene.talk, draft=text)
        if feedback.perfect:
            return
        facts = {"talk": scene.talk, "draft": text, "feedback": feedback}
        async with close_stream(
            kit.stream("refine", DraftSplitter(len(findings)), stage="refine", **facts)
        ) as sentences:
            async for sentence in sentences:
                begun = True
                yield sentence
    except PipelineError:
        if begun:
            raise


def format_draft(sentences: Sequence[MarkedSentence]) -> str:
    """Return sentences as a model writes them: the numbers in brackets before the full stop."""
    return " ".join(map(_append_marks, sentences))


def _append_marks(sentence: MarkedSentence) -> str:
    marks = "".join(f"[{number}]" for number in sentence.numbers)
    body = sentence.text.rstrip(".!?。")
    return f"{body} {marks}{sentence.text[len(body) :]}" if marks else sentence.text


async def say_all(
    sentences: AsyncIterator[MarkedSentence], findings: Sequence[SourcedFinding], scene: TurnContext, kit: Kit
) -> bool:
    """Send sentences through the gate as they come; return whether one was let through."""
    notebook, said = SentenceAnnotator(scene, findings), False
    async with close_stream(sentences):
        async for sentence in sentences:
            passed = await kit.say(notebook.noted(sentence))
            said = said or passed
    return said


class SentenceAnnotator:
    """Attaches evidence and notes to sentences; remembers which pages were named already."""

    def __init__(self, scene: TurnContext, findings: Sequence[SourcedFinding]) -> None:
        self._spoken = scene.spoken
        self._offered = [finding.evidence for finding in findings]
        self._rivals = frozenset(place + 1 for place in find_disagreeing(findings))
        self._named: set[str] = set()

    def noted(self, marked: MarkedSentence) -> CitedSentence:
        """Return a sentence with its evidence, and a note if its sources disagree or speak another language."""
        sentence = cite_sentence(marked, self._offered)
        rival = next((number for number in marked.numbers if number in self._rivals), None)
        if rival is not None:
            return replace(sentence, note=footnotes.write_dated_note(self._offered[rival - 1][0].document))
        document = next((one.document for one in sentence.evidence), None)
        if document and self._is_foreign(document) and document.key not in self._named:
            self._named.add(document.key)
            return replace(sentence, note=footnotes.write_language_note(document))
        return sentence

    def _is_foreign(self, document: Document) -> bool:
        return bool(self._spoken and document.language) and document.language != self._spoken
