"""Run commands of the command line with fake services, and parse what they print."""

import json
from datetime import datetime, timedelta
from typing import Any

from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from storage.types import EntryKind, LogEntry
from tests.bot.fake_services import DAY, FakeServices, logged

SOURCES = """
[[corpus]]
name = "handbook"
readers = ["slack:T1/C1"]
source = { type = "folder", path = "docs", url_base = "https://example.com", include = ["*.md"], exclude = ["old"] }
[[corpus]]
name = "nothing"
[[corpus]]
name = "wikipedia"
source = { type = "wikipedia", dump = "wiki.xml.bz2" }
"""
EVIL = "=1+1 \x1b[2J Why?\u2028"
ASKER = {"platform": "slack", "workspace": "T1", "channel": "C1", "user": "U1", "name": "Ada", "channel_name": "sales"}


def make_record(asked_again: datetime) -> tuple[LogEntry, ...]:
    """Return a rated and retracted answer, the same question twice unanswered, and an interrupted turn."""
    unanswered = [
        entry
        for name in ("def456", "def789")
        for entry in (
            LogEntry(name, EntryKind.TURN_OPENED, {"question": EVIL, "asker": ASKER}, at=asked_again),
            LogEntry(name, EntryKind.TURN_CLOSED, {"status": "abstained", "text": "Nothing."}, at=DAY),
        )
    ]
    rating = {"what": "down", "by": "slack:T1/U1", "comment": "It opens at\neight."}
    rated = LogEntry("abc123", EntryKind.FEEDBACK, rating, at=DAY)
    retracted = LogEntry("abc123", EntryKind.EDITED, {"retracted": True}, at=DAY)
    interrupted = LogEntry("ghi", EntryKind.TURN_OPENED, {"question": "Cut?"}, at=DAY + timedelta(days=1))
    return (*logged(), rated, retracted, *unanswered, interrupted)


def run(*arguments: str, services: FakeServices | None = None, typed: str = "") -> Result:
    invocation = CliState(services=(services or FakeServices()).build())
    return CliRunner().invoke(app, arguments, obj=invocation, input=typed, prog_name="footnote")


def document(result: Result) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(result.stdout)
    assert read.pop("schema") == 1
    return read
