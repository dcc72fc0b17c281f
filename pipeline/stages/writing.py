"""Stages 6 and 7: a draft over the findings, and its refinement by feedback, sentence by sentence as they arrive."""

from collections.abc import AsyncIterator, Sequence

from pipeline.citing import Marked
from pipeline.errors import PipelineError, ReplyBroken
from pipeline.findings import Finding
from pipeline.kit import Kit
from pipeline.parsing.draft import DraftSplitter
from pipeline.parsing.feedback import FEEDBACK
from pipeline.stages.scene import Scene
from pipeline.streams import closing
from pipeline.types import Drafting


async def draft(scene: Scene, findings: Sequence[Finding], kit: Kit, *, refined: bool = False) -> AsyncIterator[Marked]:
    """Yield the sentences of a reply over numbered findings; none where the model finds that none of them helps.

    A `refined` draft is asked to be at once what refinement would make of it; a student's always is.

    Raises:
        UnreadableReply: twice no sentence cited anything.
        ModelUnavailable, BudgetExceeded: as `pipeline.model.LLM` says.
    """
    kit.tell(Drafting(len(findings)))
    template, splitter = "answer" if refined or kit.limits.student else "draft", DraftSplitter(len(findings))
    facts = {"talk": scene.talk, "findings": tuple(findings), "language": scene.language}
    async with closing(kit.stream(template, splitter, stage="draft", **facts)) as sentences:
        async for sentence in sentences:
            yield sentence


async def whole_draft(scene: Scene, findings: Sequence[Finding], kit: Kit) -> tuple[Marked, ...]:
    """Return all sentences of a draft; as none of them is said yet, one that breaks is asked for again, once.

    Raises as `draft` does.
    """
    try:
        return tuple([sentence async for sentence in draft(scene, findings, kit)])
    except ReplyBroken:
        return tuple([sentence async for sentence in draft(scene, findings, kit)])


async def refine(
    scene: Scene, drafted: Sequence[Marked], findings: Sequence[Finding], kit: Kit
) -> AsyncIterator[Marked]:
    """Yield the sentences of a better reply; none where the draft cannot be made better, or nothing came of it.

    It may add nothing: what it says stands on the same findings, and the gate holds each sentence against them.
    """
    text, begun = written(drafted), False
    try:
        feedback = await kit.ask("feedback", FEEDBACK, stage="refine", talk=scene.talk, draft=text)
        if feedback.perfect:
            return
        facts = {"talk": scene.talk, "draft": text, "feedback": feedback}
        async with closing(kit.stream("refine", DraftSplitter(len(findings)), stage="refine", **facts)) as sentences:
            async for sentence in sentences:
                begun = True
                yield sentence
    except PipelineError:
        if begun:
            raise


def written(sentences: Sequence[Marked]) -> str:
    """Return sentences as a model writes them: the numbers in brackets before the full stop."""
    return " ".join(map(_with_marks, sentences))


def _with_marks(sentence: Marked) -> str:
    marks = "".join(f"[{number}]" for number in sentence.numbers)
    body = sentence.text.rstrip(".!?。")
    return f"{body} {marks}{sentence.text[len(body) :]}" if marks else sentence.text
