"""Decide how a question is answered: its scope, its budget, the conversation before it, and what its answer shows.

`open_desk` builds the desk of a running server. Days and months of budgets begin at midnight in the settings' time
zone; when a budget is spent, questions are refused or answered only with quotations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from time import monotonic

from bot.access import Asker, Exclusion, find_forgotten_documents, is_admin
from bot.answering.question_answering import answer, check_text, close_interrupted, record_unanswered
from bot.answering.study import draw_system, render_study_notice
from bot.answering.turn_record import TurnRecord
from bot.app import App
from bot.desk.channel_settings import QUOTING_SYSTEM, find_searchable_corpora, load_channel_settings
from bot.desk.desk import Desk
from bot.desk.jobs.job import EXCLUDED, DeskPorts, TurnPlan
from bot.desk.jobs.scheduler import ConcurrencyLimit, SchedulerSettings
from bot.desk.memory import recall_conversation
from bot.desk.platform_port import Platform
from bot.desk.supervisor import Clock
from bot.settings.tables.settings_tables import BudgetSettings
from bot.types import DeliveryOutcome, Failure, Question, TurnResult, build_turn_request
from bot.views import view_reducer
from bot.views.catalog import list_asked_claims, translate
from bot.views.turn_view import View
from bot.views.view_reducer import remove_share_button
from pipeline.errors import NotAClaim
from pipeline.stages.claim_check import extract_statements
from storage.types import QueuedQuestion, SpendingTotal

_NOT_COUNTED = frozenset({DeliveryOutcome.SILENT})
"""Messages that did not address the bot and got no answer do not count as their author's questions."""


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The questions, tokens and cost used so far, this question included."""

    by_user: int = 0  # questions of today
    in_channel: int = 0  # questions of today
    today: SpendingTotal = field(default_factory=SpendingTotal)
    this_month: SpendingTotal = field(default_factory=SpendingTotal)


@dataclass(frozen=True, slots=True)
class BudgetDecision:
    """Whether and by which system a question may be answered; texts in the asker's language."""

    system: str = ""  # the system that answers if a budget is spent; empty for the usual one
    notice: str = ""  # why only quotations are given
    because: str = ""  # the setting whose limit is reached, for the record
    refusal: str = ""  # why the question is not answered, and until when


@dataclass(frozen=True, slots=True)
class BudgetPeriod:
    """A day or a month: its first moment, and the first moment after it, in UTC."""

    since: datetime
    until: datetime


def find_day(now: datetime, zone: tzinfo) -> BudgetPeriod:
    """Return the day of a moment in the time zone; it has 23 or 25 hours when the clocks change."""
    day = now.astimezone(zone).date()
    return BudgetPeriod(_find_midnight(day, zone), _find_midnight(day + timedelta(days=1), zone))


def find_month(now: datetime, zone: tzinfo) -> BudgetPeriod:
    first = now.astimezone(zone).date().replace(day=1)
    return BudgetPeriod(_find_midnight(first, zone), _find_midnight((first + timedelta(days=31)).replace(day=1), zone))


def decide_budget(
    limits: BudgetSettings, used: BudgetUse, *, now: datetime, zone: tzinfo, language: str
) -> BudgetDecision:
    """Decide whether a question may be answered within `limits`; a limit of 0 means no limit."""
    day, month = (
        f"{end.until.astimezone(zone):%Y-%m-%d %H:%M %Z}" for end in (find_day(now, zone), find_month(now, zone))
    )
    for name, count in (("questions_per_user", used.by_user), ("questions_per_channel", used.in_channel)):
        most = getattr(limits, name)
        if most and count > most:
            return BudgetDecision(because=name, refusal=translate(f"budget_{name}", language, most=most, when=day))
    spent = (
        ("cost_per_month", used.this_month.cost, "budget_month", month),
        ("tokens_per_month", used.this_month.tokens, "budget_month", month),
        ("tokens_per_day", used.today.tokens, "budget_day", day),
    )
    for name, amount, occasion, when in spent:
        most = getattr(limits, name)
        if most and amount >= most:
            return BudgetDecision(QUOTING_SYSTEM, translate(occasion, language, when=when), name)
    return BudgetDecision()


async def check_budget(app: App, row: QueuedQuestion, *, now: datetime, language: str) -> BudgetDecision:
    """Decide whether and how a queued question may be answered, by the budget used before it. Raises `StorageError`."""
    limits, day = app.settings.limits, find_day(now, app.settings.zone).since
    asked = partial(app.queue.asked, since=day, upto=row.ticket, excluded=_NOT_COUNTED)
    by_user = await asked(user=row.user, channel="") if limits.questions_per_user else 0
    in_channel = await asked(user="", channel=row.channel) if limits.questions_per_channel else 0
    return await _decide(app, BudgetUse(by_user, in_channel), now, language)


async def check_call_budget(app: App, user: str, *, in_progress: int, now: datetime, language: str) -> BudgetDecision:
    """Decide on a question by a program, which is never queued, by the program's recorded turns.

    Raises `StorageError`.

    `in_progress` counts the turns of this `user` whose end is not recorded yet, this one included.
    """
    limits, day = app.settings.limits, find_day(now, app.settings.zone).since
    before = (await app.spending.total(since=day, platform_user=user)).turns if limits.questions_per_user else 0
    return await _decide(app, BudgetUse(before + in_progress), now, language)


async def _decide(app: App, used: BudgetUse, now: datetime, language: str) -> BudgetDecision:
    """Decide by the limits, with the tokens and cost that all turns of the day and month have used."""
    limits, zone, nothing = app.settings.limits, app.settings.zone, SpendingTotal()
    day, month = find_day(now, zone).since, find_month(now, zone).since
    today = await app.spending.total(since=day) if limits.tokens_per_day else nothing
    monthly = limits.tokens_per_month or limits.cost_per_month
    this_month = await app.spending.total(since=month) if monthly else nothing
    used = replace(used, today=today, this_month=this_month)
    return decide_budget(limits, used, now=now, zone=zone, language=language)


def _find_midnight(day: date, zone: tzinfo) -> datetime:
    """Return the first moment of a day; if the clocks skip midnight, the moment of their change."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)


MAX_PEOPLE_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class _LastQuestion:
    until: float
    what: str
    notified: bool = False


class Cooldown:
    """Lets each person ask only once within some seconds."""

    def __init__(self, seconds: Callable[[], float], now: Callable[[], float] = monotonic) -> None:
        """Create the cooldown. `seconds` returns the wait after a question that is asked now; 0 for none."""
        self._seconds, self._now = seconds, now
        self._asked: dict[str, _LastQuestion] = {}

    def left(self, who: str, what: str) -> float:
        """Return how many seconds a person still has to wait; 0 also for the message that started the wait."""
        asked = self._asked.get(who)
        return 0.0 if asked is None or asked.what == what else max(asked.until - self._now(), 0.0)

    def begin(self, who: str, what: str) -> None:
        """Start a person's wait; the same message does not start another one."""
        if not (seconds := self._seconds()) or (who in self._asked and self._asked[who].what == what):
            return
        self._asked.pop(who, None)
        while len(self._asked) >= MAX_PEOPLE_REMEMBERED:
            self._asked.pop(next(iter(self._asked)))
        self._asked[who] = _LastQuestion(self._now() + seconds, what)

    def first_refusal(self, who: str) -> bool:
        """Return whether this is the first refusal during a person's wait. They are notified only of the first one."""
        asked = self._asked.get(who)
        if asked is None or asked.notified:
            return False
        self._asked[who] = replace(asked, notified=True)
        return True


def render_unverified_notice(text: str, answered: TurnResult, language: str) -> str:
    """Return a notice of how many statements of a text were not checked; empty if all, or none, were checked."""
    checked = len(list_asked_claims(answered.answer))
    try:
        left = len(extract_statements(text)) - checked
    except NotAClaim:
        return ""
    return translate("unchecked", language, count=left, checked=checked) if checked and left > 0 else ""


def open_desk(app: App, platforms: Mapping[str, Platform], *, clock: Clock | None = None) -> Desk:
    """Return the desk of an opened app; it works within `desk.running()`.

    `platforms`, by name, may be filled until the desk runs, because building a platform needs the desk.
    """
    clock = clock or Clock()
    policy = TurnPolicy(app, clock)
    ports = DeskPorts(
        plan=policy.plan,
        finish_view=policy.finish_view,
        load_entries=app.audit.turn,
        append=app.audit.append,
        prepare=app.audit.prepare,
        close_interrupted=partial(close_interrupted, app),
        record_unanswered=partial(record_unanswered, app),
        is_readable=policy.is_readable,
        may_govern=policy.may_govern,
    )

    def pace() -> SchedulerSettings:
        settings = app.settings.desk
        limit = ConcurrencyLimit(settings.at_once, settings.per_channel)
        return SchedulerSettings(limit, settings.patience_seconds, settings.grace_seconds)

    # SQLite is in the home, which one process owns; several machines may share PostgreSQL.
    return Desk(app.queue, platforms, ports, pace, sole=not app.settings.database, clock=clock)


def render_exclusion(exclusion: Exclusion, language: str) -> str:
    """Return why a person is not answered at all; empty if they are answered."""
    occasions = {Exclusion.DENIED: "discord_denied", Exclusion.ELSEWHERE: "discord_not_here"}
    return translate(occasions[exclusion], language) if exclusion else ""


@dataclass(frozen=True, slots=True)
class TurnPolicy:
    """Decides how a question is answered when it is started, and how its answer is shown."""

    app: App
    clock: Clock

    async def plan(self, platform: Platform, question: Question, row: QueuedQuestion, turn_id: str) -> TurnPlan:
        app = self.app.snapshot()
        run = partial(check_text if question.task == "check" else answer, app)
        channel = await load_channel_settings(app, question.place.channel_id)
        budget = await check_budget(app, row, now=self.clock.now(), language=question.language)
        request = replace(
            build_turn_request(question, turn_id=turn_id, ticket=row.ticket),
            taken=None if row.turn_id else row.taken_at,
            within=channel.corpora,
            because="" if channel.paused else budget.because,
        )
        if excluded := render_exclusion(question.asker.exclusion, question.language):
            return TurnPlan(request, run, refused=Failure(EXCLUDED, excluded, ""))
        if question.asker.uninvited and not await find_searchable_corpora(app, question.asker):
            return TurnPlan(request, run, refused=Failure(EXCLUDED, translate("slack_invite", question.language), ""))
        if channel.paused:
            paused = translate("channel_paused", question.language)
            return TurnPlan(request, run, refused=Failure("channel_paused", paused, ""))
        if budget.refusal:
            hint = f"The limit is set by [limits] {budget.because}."
            return TurnPlan(request, run, refused=Failure("over_budget", budget.refusal, hint))
        # Claims and messages that do not address the bot are answered without the conversation: otherwise an "ok"
        # between people would be a question about the last answer.
        alone = question.task == "check" or question.unasked
        earlier = () if alone else await recall_conversation(app, platform, question, row)
        compares = channel.study and not (alone or budget.system)
        drawn = await draw_system(app, row, channel.study) if compares else None
        system = budget.system or (drawn.system if drawn else channel.system)
        chosen = replace(request, earlier=earlier, system=system, tone=channel.tone, effort=channel.effort, study=drawn)
        notice = render_study_notice(drawn, question.language) if drawn else budget.notice
        scope = await find_searchable_corpora(app, question.asker)
        return TurnPlan(chosen, run, notice, is_readable=partial(self._is_still_readable, scope))

    async def finish_view(self, view: View, question: Question, result: TurnResult) -> View:
        """Return the final view, with the nearest pages and buttons that may be shown in the question's place now."""
        app = self.app.snapshot()
        channel = await load_channel_settings(app, question.place.channel_id)
        here = await find_searchable_corpora(app, question.asker)
        pages = {(hit.passage.corpus, hit.passage.document): hit for hit in result.answer.nearest}
        gone = await find_forgotten_documents(app.manifest, pages)
        nearest = tuple(hit for page, hit in pages.items() if page[0] in here and page not in gone)
        shown = replace(result, answer=replace(result.answer, nearest=nearest))
        checks = question.task == "check"
        finish = view_reducer.finish_check_view if checks else view_reducer.finish_view
        final = finish(view, shown, only_asker=question.only_asker, ask=bool(channel.ask))
        if checks and (notice := render_unverified_notice(question.text, result, view.language)):
            final = replace(final, left_out=notice)
        if question.asker.kind != "channel":
            final = replace(final, buttons=remove_share_button(final.buttons))
        return final

    async def is_readable(self, question: Question, turn: TurnRecord) -> bool:
        """Return whether a recorded answer and its counts of claims may still be shown where its question was asked."""
        if question.asker.exclusion or await find_forgotten_documents(self.app.manifest, turn.documents):
            return False
        return turn.may_show_evidence(await find_searchable_corpora(self.app, question.asker))

    async def _is_still_readable(self, scope: frozenset[str], question: Question, result: TurnResult) -> bool:
        """Return whether the turn's `scope` is still readable, and nothing behind the answer forgotten.

        Returns False if that is unsure, as for an answer with checked claims.
        """
        # Only the record has the passages that claims were compared with.
        documents = result.cited_documents | result.remembered
        if (
            question.asker.exclusion
            or result.answer.claims
            or await find_forgotten_documents(self.app.manifest, documents)
        ):
            return False
        return scope <= await find_searchable_corpora(self.app, question.asker)

    async def may_govern(self, question: Question, by: Asker) -> bool:
        """Return whether a person governs the question's channel, and may stop and retract others' questions there."""
        place = question.place
        same = (by.platform, by.workspace) == (place.platform, place.workspace)
        return same and (is_admin(self.app.settings, by) or (by.moderates and by.channel == place.channel))
