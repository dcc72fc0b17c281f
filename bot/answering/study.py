"""Draw the system that answers a question where people compare two systems without knowing which one answers.

Of two successive questions of a person, each system answers one, in random order, so that their ratings can be paired.
The draw depends only on the question's place among the person's questions: a repeated or edited one gets the same
system. Silent messages and fact-checks have no place.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

from bot.app import App
from bot.types import StudyDraw
from bot.views.catalog import translate
from storage.record.comparisons import Comparisons
from storage.types import QueuedQuestion

STUDY = "study"  # the key of the channel's setting


def draw(systems: Sequence[str], seed: str, number: int) -> StudyDraw:
    """Draw the system for the question with this number, from 0. Pure."""
    order = Random(f"{seed} {number // 2}").sample(systems, 2)  # noqa: S311 - sampling, not secrets
    return StudyDraw(order[number % 2], tuple(systems), number)


async def draw_system(app: App, row: QueuedQuestion, systems: Sequence[str]) -> StudyDraw | None:
    """Draw the system that answers a question of a channel that agreed to compare these systems.

    Returns None if the asker left the comparison. Raises `StorageError`.
    """
    if await Comparisons(app.audit.database).has_left(row.user):
        return None
    agreed = [entry.at for entry in await app.audit.turn(row.channel) if entry.body.get("key") == STUDY and entry.at]
    since = max(agreed, default=datetime.fromtimestamp(0, UTC))
    earlier = await app.queue.bodies_before(row, since=since)
    number = sum(not body.get("unasked") and body.get("task") != "check" for body in earlier)
    return draw(systems, f"{row.channel} {row.user} {since}", number)


def render_study_notice(drawn: StudyDraw, language: str) -> str:
    """Return the notice above a person's first compared answer; empty for the others."""
    return "" if drawn.number else translate("study_notice", language)
