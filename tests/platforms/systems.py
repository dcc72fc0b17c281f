"""The real quoting system behind a gate: tests decide when a turn continues, and see its conversation."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field, replace

from bot.app import App
from pipeline.kit import Kit, System
from pipeline.systems import extractive
from pipeline.types import CitedSentence, Conversation, Status
from storage.types import Evidence, SearchQuery
from tests.pipeline.world import registered


async def recite(talk: Conversation, kit: Kit) -> Status:
    """Say every sentence of all search hits, in document order."""
    hits = await kit.search(SearchQuery(talk.question.text), 50)
    for hit in sorted(hits, key=lambda one: (one.document.key, one.passage.position)):
        text = hit.passage.text
        for found in re.finditer(r"[^. ][^.]*[.]", text):
            evidence = Evidence(found[0], hit.passage, hit.document, found.span())
            await kit.say(CitedSentence(evidence.text, (evidence,)))
    return Status.ANSWERED


@dataclass
class Gated:
    """Answers as `inner` does. Held questions wait before they start, or after their first sentence."""

    inner: System = extractive.answer
    talks: list[Conversation] = field(default_factory=list)
    """Every conversation that was to be answered, in order."""
    said: Counter[str] = field(default_factory=Counter)
    """The number of sentences that passed the support check, by question."""
    shut: set[str] = field(default_factory=set)
    """The questions that are held before they start."""
    later: set[str] = field(default_factory=set)  # the questions that are held after their first sentence
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, talk: Conversation, kit: Kit) -> Status:
        text = talk.question.text
        self.talks.append(talk)
        await self._notify()
        await self._pass(text, self.shut)

        async def say(sentence: CitedSentence) -> bool:
            said = await kit.say(sentence)
            self.said[text] += said
            await self._notify()
            await self._pass(text, self.later)
            return said

        return await self.inner(talk, replace(kit, say=say))

    @property
    def asked(self) -> list[str]:
        return [talk.question.text for talk in self.talks]

    async def open(self, *texts: str) -> None:
        """Let questions continue; all without an argument."""
        for held in (self.shut, self.later):
            held.difference_update(texts or tuple(held))
        await self._notify()

    async def until_asked(self, count: int = 1) -> None:
        """Wait until so many questions arrived."""
        await self._until(lambda: len(self.talks) >= count)

    async def until_said(self, text: str) -> None:
        """Wait until a sentence of the answer to a question was said."""
        await self._until(lambda: self.said[text] > 0)

    def answering(self, app: App) -> App:
        """Return the app with this as its system."""
        return replace(app, systems={**app.systems, **registered(extractive=self)})

    async def _pass(self, text: str, held: set[str]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: text not in held)

    async def _until(self, holds) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(holds)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
