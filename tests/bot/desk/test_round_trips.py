"""Test of the number of database transactions per question."""

from collections import Counter
from pathlib import Path

from sqlalchemy import Engine, event

from bot.desk.turn_policy import open_desk
from storage.types import EntryKind
from tests.bot.desk.corpora_app import RecordedConversation, open_corpora_app
from tests.bot.desk.fake_desk import MemoryPlatform, World
from tests.platforms.bots import eventually

MOST_WRITES, MOST_READS = 5, 5
"""Writes: the question is stored, claimed, opened, closed, finished. Reads: earlier turns, search, cited pages."""


async def test_question_takes_few_transactions(tmp_path: Path) -> None:
    begun, world = Counter[str](), World()

    def note(_connection, _cursor, statement, *_) -> None:
        begun[statement] += statement.startswith("BEGIN")

    async with open_corpora_app(tmp_path) as app:
        desk, conversation = open_desk(app, {"slack": MemoryPlatform(world)}), RecordedConversation(app)
        event.listen(Engine, "before_cursor_execute", note)
        try:
            async with desk.running():
                await desk.resume_questions()
                begun.clear()
                await desk.take(conversation.question("When is the red one open?", handle="", message="1"))
                await eventually(lambda: any(view.done for view in world.views))
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        row = await app.queue.get(1)
        entries = await app.audit.turn(row.turn_id)

    assert begun["BEGIN IMMEDIATE"] <= MOST_WRITES
    assert begun["BEGIN"] <= MOST_READS
    assert (row.outcome, row.posted) == ("delivered", tuple(world.posts))
    assert [entry.kind for entry in entries if entry.kind is not EntryKind.STEP] == [
        EntryKind.TURN_OPENED,
        EntryKind.TURN_CLOSED,
        EntryKind.DELIVERED,
    ]
