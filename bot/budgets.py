"""Whether a question is answered, only quoted, or refused: by what was asked and used today and this month.

Days and months begin at midnight in the settings' time zone. `decided` is pure; `budgeted` asks the database first, for
what is limited and nothing else.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from bot.app import App
from bot.channel_settings import QUOTING
from bot.desk.types import Outcome
from bot.settings_of.desk import BudgetSettings
from bot.words import say
from storage.types import QueuedQuestion, Spent

NOT_COUNTED = frozenset({Outcome.SILENT})
"""Messages that the bot read unasked, and had nothing to say to, are no questions of whoever wrote them."""


@dataclass(frozen=True, slots=True)
class Used:
    """What was asked and used, this question included."""

    by_user: int = 0
    """Questions of today."""
    in_channel: int = 0
    """Questions of today."""
    today: Spent = field(default_factory=Spent)
    this_month: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True)
class Allowed:
    """A question may be answered. Where a budget is spent, by `system` alone."""

    system: str = ""
    """Empty for the usual one."""
    notice: str = ""
    """Why only quotations are given, in the asker's language."""
    because: str = ""
    """The setting whose limit is reached, for the record."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A question is not answered."""

    text: str
    """Why, and when it goes on, in the asker's language."""
    because: str
    """The setting whose limit is reached."""


@dataclass(frozen=True, slots=True)
class Spell:
    """A day or a month: its first moment, and the first moment after it, both in UTC."""

    since: datetime
    until: datetime


def day_of(now: datetime, zone: tzinfo) -> Spell:
    """Return the day of a moment, as the zone's clocks have it: 23 or 25 hours where they are changed."""
    day = now.astimezone(zone).date()
    return Spell(_midnight(day, zone), _midnight(day + timedelta(days=1), zone))


def month_of(now: datetime, zone: tzinfo) -> Spell:
    """Return the month of a moment, as the zone's clocks have it."""
    first = now.astimezone(zone).date().replace(day=1)
    return Spell(_midnight(first, zone), _midnight((first + timedelta(days=31)).replace(day=1), zone))


def decided(limits: BudgetSettings, used: Used, *, now: datetime, zone: tzinfo, language: str) -> Allowed | Refusal:
    """Decide by the limits, of which 0 is none, and say so in the asker's language."""
    day, month = (f"{end.until.astimezone(zone):%Y-%m-%d %H:%M %Z}" for end in (day_of(now, zone), month_of(now, zone)))
    for name, count in (("questions_per_user", used.by_user), ("questions_per_channel", used.in_channel)):
        most = getattr(limits, name)
        if most and count > most:
            return Refusal(say(f"budget_{name}", language, most=most, when=day), name)
    spent = (
        ("cost_per_month", used.this_month.cost, "budget_month", month),
        ("tokens_per_month", used.this_month.tokens, "budget_month", month),
        ("tokens_per_day", used.today.tokens, "budget_day", day),
    )
    for name, amount, occasion, when in spent:
        most = getattr(limits, name)
        if most and amount >= most:
            return Allowed(QUOTING, say(occasion, language, when=when), name)
    return Allowed()


async def budgeted(app: App, row: QueuedQuestion, *, now: datetime, language: str) -> Allowed | Refusal:
    """Decide on a question of the queue.

    Raises:
        StorageError: it cannot be read what was used.
    """
    limits, zone = app.settings.limits, app.settings.zone
    used = await _used(app, row, day_of(now, zone).since, month_of(now, zone).since)
    return decided(limits, used, now=now, zone=zone, language=language)


async def _used(app: App, row: QueuedQuestion, day: datetime, month: datetime) -> Used:
    limits = app.settings.limits
    nothing = Spent()
    return Used(
        await _asked(app, row, day, user=row.user) if limits.questions_per_user else 0,
        await _asked(app, row, day, channel=row.channel) if limits.questions_per_channel else 0,
        await app.spending.total(since=day) if limits.tokens_per_day else nothing,
        await app.spending.total(since=month) if limits.tokens_per_month or limits.cost_per_month else nothing,
    )


async def _asked(app: App, row: QueuedQuestion, day: datetime, *, user: str = "", channel: str = "") -> int:
    """Count the questions of today up to this one: what was taken after it does not use up what it may."""
    return await app.queue.asked(since=day, user=user, channel=channel, upto=row.ticket, besides=NOT_COUNTED)


def _midnight(day: date, zone: tzinfo) -> datetime:
    """Return the first moment of a day. Where clocks skip midnight, it is the moment of their change."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)
