"""An app of three corpora with distinct words, and recorded conversations."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.access import Asker
from bot.answering.question_answering import answer
from bot.app import App
from bot.desk.jobs.job import encode_question as row_of
from bot.desk.platform_port import PlatformError
from bot.settings.tables.settings_tables import Settings
from bot.types import ConversationMessage, Place, Question, TurnRequest, TurnResult
from pipeline.types import CitedSentence, Status, Turn
from storage.types import Evidence, QueuedQuestion, SearchQuery
from tests.filled_homes import fill_home
from tests.pipeline.world import registered
from tests.storage.stores import kept, opened

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
MARKS = {"handbook": "quayside", "kitchen": "samovar", "board": "merger"}
"""A word that only the pages and titles of the corpus contain."""
CHANNEL = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)


async def quoting(talk: Any, kit: Any) -> Status:
    hits = await kit.search(SearchQuery(talk.question.text), 3)
    for hit in hits[:1]:
        text = hit.passage.text
        await kit.say(CitedSentence(text, (Evidence(text, hit.passage, hit.document, (0, len(text))),)))
    return Status.ANSWERED


async def abstaining(talk: Any, kit: Any) -> Status:
    await kit.search(SearchQuery(talk.question.text), 3)
    return Status.ABSTAINED


async def failing(talk: Any, kit: Any) -> Status:
    del talk, kit
    raise TimeoutError


SYSTEMS = registered(quoting=quoting, abstaining=abstaining, failing=failing)


def settings(home: Path, readers: dict[str, Sequence[str]] | None = None, **more: Any) -> Settings:
    """Return settings by which the team may read all corpora, or only the given readers may."""
    corpora = [{"name": name, "readers": tuple((readers or {}).get(name, ("*",)))} for name in MARKS]
    return Settings(home=home, corpus=corpora, system="", **more)


@asynccontextmanager
async def open_corpora_app(home: Path) -> AsyncIterator[App]:
    corpora = {
        name: {mark: {"title": f"The {mark}", "": f"The {mark} is open at ten."}} for name, mark in MARKS.items()
    }
    await fill_home(home, corpora)
    with opened(home) as store:
        yield App(settings(home), store, **kept(store), systems=SYSTEMS)


@dataclass
class RecordedConversation:
    """A conversation in a channel, recorded by hand: its questions are queued, answered and completed."""

    app: App
    asker: Asker = CHANNEL
    name: str = "slack:T1/C1/1"
    asked: int = 0

    def question(self, text: str, **changes: Any) -> Question:
        self.asked += 1
        place = Place(self.asker.platform, self.asker.workspace, self.asker.channel, "1")
        at = START + timedelta(minutes=10 * self.asked)
        message = f"{self.name}/q{self.asked}"
        asking = Question(message, "ask", text, self.asker, place, self.name, at, message)
        return replace(asking, **changes)

    async def take(self, text: str, **changes: Any) -> tuple[Question, QueuedQuestion]:
        question = self.question(text, **changes)
        row, _ = await self.app.queue.put(row_of(question))
        return question, row

    async def ask(
        self,
        text: str,
        *,
        system: str = "quoting",
        outcome: str = "delivered",
        earlier: tuple[Turn, ...] = (),
        within: tuple[str, ...] | None = None,
        **changes: Any,
    ) -> tuple[QueuedQuestion, TurnResult]:
        question, row = await self.take(text, **changes)
        asked = TurnRequest(text, question.asker, system=system, ticket=row.ticket, earlier=earlier, within=within)
        done = await answer(self.app, asked, lambda _: None)
        await self.app.queue.note(row.ticket, turn_id=done.answer_id, posted=(f"{self.name}/a{self.asked}",))
        await self.app.queue.finish(row.ticket, outcome)
        return row, done


@dataclass
class FakeHistory:
    """A platform that returns a conversation, or raises a fault."""

    said: tuple[ConversationMessage, ...] = ()
    fault: PlatformError | None = None
    asked: list[int] = field(default_factory=list)

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        del question
        self.asked.append(most)
        if self.fault:
            raise self.fault
        return self.said


def make_message(message: str, text: str, minutes: float, user: str = "U7") -> ConversationMessage:
    """Return a message some minutes after the conversation began; the bot's if `user` is empty."""
    return ConversationMessage(message, user, text, START + timedelta(minutes=minutes))
