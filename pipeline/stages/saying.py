"""The way out: sentences with their evidence, and a note of our own where one is due, through the gate in order."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from pipeline import notes
from pipeline.citing import Marked, cite
from pipeline.findings import Finding, disagreeing
from pipeline.kit import Kit
from pipeline.stages.scene import Scene
from pipeline.streams import closing
from pipeline.types import CitedSentence
from storage.types import Document


async def say_all(sentences: AsyncIterator[Marked], findings: Sequence[Finding], scene: Scene, kit: Kit) -> bool:
    """Say sentences as they come; return whether one of them was let through."""
    notebook, said = Notebook(scene, findings), False
    async with closing(sentences):
        async for sentence in sentences:
            passed = await kit.say(notebook.noted(sentence))
            said = said or passed
    return said


class Notebook:
    """Gives sentences their evidence and notes; it remembers which pages were named already."""

    def __init__(self, scene: Scene, findings: Sequence[Finding]) -> None:
        self._spoken = scene.spoken
        self._offered = [finding.evidence for finding in findings]
        self._rivals = frozenset(place + 1 for place in disagreeing(findings))
        self._named: set[str] = set()

    def noted(self, marked: Marked) -> CitedSentence:
        """Return a sentence with its evidence, and a note if its sources disagree or speak another language."""
        sentence = cite(marked, self._offered)
        rival = next((number for number in marked.numbers if number in self._rivals), None)
        if rival is not None:
            return replace(sentence, note=notes.dated(self._offered[rival - 1][0].document))
        document = next((one.document for one in sentence.evidence), None)
        if document and self._is_foreign(document) and document.key not in self._named:
            self._named.add(document.key)
            return replace(sentence, note=notes.foreign(document))
        return sentence

    def _is_foreign(self, document: Document) -> bool:
        return bool(self._spoken and document.language) and document.language != self._spoken
