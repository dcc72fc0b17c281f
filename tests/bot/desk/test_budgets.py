"""Tests of the daily and monthly budgets of questions, tokens and cost."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.app import App
from bot.desk.turn_policy import BudgetDecision, BudgetUse, check_budget, decide_budget, find_day, find_month
from bot.settings.tables.settings_tables import LimitSettings, Settings
from storage.database.queue import Queue
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry, NewQuestion, SpendingTotal
from tests.storage.stores import kept, opened

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def decide(used, now=NOON, language="en", zone=BERLIN, **limits):
    return decide_budget(LimitSettings(**limits), used, now=now, zone=zone, language=language)


def test_questions_without_limits_are_answered() -> None:
    used = BudgetUse(1_000, 1_000, SpendingTotal(9, 10**9, 1e6), SpendingTotal(9, 10**9, 1e6))

    assert decide(used) == BudgetDecision()


def test_question_within_its_limits_is_answered() -> None:
    limits = {"questions_per_user": 3, "questions_per_channel": 5, "tokens_per_day": 100, "cost_per_month": 2.0}

    assert decide(BudgetUse(3, 5, SpendingTotal(1, 99), SpendingTotal(1, 99, 1.99)), **limits) == BudgetDecision()


@pytest.mark.parametrize(
    ("field", "limit"), [("by_user", "questions_per_user"), ("in_channel", "questions_per_channel")]
)
def test_question_over_the_limit_is_refused_until_midnight(field, limit) -> None:
    decision = decide(BudgetUse(**{field: 4}), **{limit: 3})

    assert decision.refusal
    assert decision.because == limit
    assert "all 3 questions" in decision.refusal.lower()
    assert "2026-03-11 00:00 CET" in decision.refusal


@pytest.mark.parametrize(
    ("used", "limits", "until"),
    [
        (BudgetUse(today=SpendingTotal(1, 100)), {"tokens_per_day": 100}, "2026-03-11 00:00 CET"),
        (BudgetUse(this_month=SpendingTotal(1, 100)), {"tokens_per_month": 100}, "2026-04-01 00:00 CEST"),
        (BudgetUse(this_month=SpendingTotal(1, 0, 2.5)), {"cost_per_month": 2.5}, "2026-04-01 00:00 CEST"),
    ],
)
def test_spent_model_budget_allows_only_quotations(used, limits, until) -> None:
    decision = decide(used, **limits)

    assert (decision.system, decision.because) == ("extractive", next(iter(limits)))
    assert until in decision.notice
    assert decision.notice != decide(used, language="de", **limits).notice


def test_refusal_names_the_monthly_budget_if_the_daily_one_is_spent_too() -> None:
    decision = decide(
        BudgetUse(today=SpendingTotal(1, 9), this_month=SpendingTotal(1, 9)), tokens_per_day=5, tokens_per_month=5
    )

    assert decision.because == "tokens_per_month"


@pytest.mark.parametrize(
    ("now", "zone", "hours"),
    [
        (datetime(2026, 3, 29, 12, tzinfo=UTC), "Europe/Berlin", 23),
        (datetime(2026, 10, 25, 12, tzinfo=UTC), "Europe/Berlin", 25),
        (datetime(2024, 3, 31, 12, tzinfo=UTC), "Asia/Beirut", 23),
        (datetime(2018, 11, 4, 12, tzinfo=UTC), "America/Sao_Paulo", 23),
        (datetime(2026, 7, 1, 12, tzinfo=UTC), "UTC", 24),
    ],
)
def test_day_lasts_from_midnight_to_midnight_when_clocks_change(now, zone, hours) -> None:
    day = find_day(now, ZoneInfo(zone))

    assert day.until - day.since == timedelta(hours=hours)


def test_day_follows_the_teams_time_zone() -> None:
    late = datetime(2025, 12, 31, 23, 30, tzinfo=UTC)

    assert find_day(late, BERLIN).since == datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert find_month(late, BERLIN).until == datetime(2026, 1, 31, 23, tzinfo=UTC)


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - as it wants them
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Beirut", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu"]),
)
def test_every_moment_is_in_its_day_and_month(now, name) -> None:
    zone = ZoneInfo(name)
    for spell_of in (find_day, find_month):
        spell = spell_of(now, zone)
        assert spell.since <= now < spell.until
        assert spell_of(spell.until, zone).since == spell.until


@pytest.fixture
def opened_app(tmp_path):
    with opened(tmp_path) as store:
        database = store.manifest.database
        noon = {"queue": Queue(database, clock=lambda: NOON), "audit": AuditLog(database, clock=lambda: NOON)}
        yield lambda **limits: App(
            Settings(home=tmp_path, timezone="Europe/Berlin", limits=limits), store, **(kept(store) | noon)
        )


async def ask(app, number, user="slack:T1/U1"):
    row, _ = await app.queue.put(NewQuestion(f"k{number}", "slack:T1/C1", "c", user, f"m{number}", {"text": "?"}, ""))
    return row


async def test_later_questions_do_not_use_up_earlier_ones_budget(opened_app) -> None:
    app = opened_app(questions_per_user=2)
    rows = [await ask(app, number) for number in range(3)] + [await ask(app, 9, user="slack:T1/U2")]

    decision = [await check_budget(app, row, now=NOON, language="en") for row in rows]

    assert [bool(decided.refusal) for decided in decision] == [False, False, True, False]


async def test_overheard_messages_are_not_counted(opened_app) -> None:
    app = opened_app(questions_per_channel=1)
    overheard, asked = await ask(app, 1), await ask(app, 2)
    await app.queue.finish(overheard.ticket, "silent")

    assert await check_budget(app, asked, now=NOON, language="en") == BudgetDecision()


async def test_questions_of_yesterday_are_not_counted(opened_app) -> None:
    app = opened_app(questions_per_user=1)
    await ask(app, 1)
    row = await ask(app, 2)

    assert (await check_budget(app, row, now=NOON, language="en")).refusal
    assert await check_budget(app, row, now=NOON + timedelta(days=1), language="en") == BudgetDecision()


async def test_spent_budget_is_read_from_the_record(opened_app) -> None:
    app = opened_app(tokens_per_day=10, cost_per_month=1.0)
    row = await ask(app, 1)
    usage = {"prompt_tokens": 8, "completion_tokens": 4, "cost": 0.5}
    before = await check_budget(app, row, now=NOON, language="en")
    await app.audit.append(LogEntry("t", EntryKind.TURN_CLOSED, {"usage": usage}))

    after = await check_budget(app, row, now=NOON, language="en")
    later = await check_budget(app, row, now=NOON + timedelta(days=2), language="en")

    assert [decided.because for decided in (before, after, later)] == ["", "tokens_per_day", ""]


async def test_edited_question_is_counted_again(opened_app) -> None:
    app = opened_app(questions_per_user=2)
    first, second = await ask(app, 1), await ask(app, 2)
    await app.queue.note(first.ticket, text="Waiting?")
    waiting = await check_budget(app, first, now=NOON, language="en")
    for row in (first, second):
        await app.queue.finish(row.ticket, "delivered")
    await app.queue.reopen(first.ticket, "In other words?")
    again = await check_budget(app, first, now=NOON, language="en")

    assert waiting == BudgetDecision()
    assert again.refusal


async def test_edit_during_the_answer_is_counted_again(opened_app) -> None:
    app = opened_app(questions_per_channel=1)
    row = await ask(app, 1)
    await app.queue.claim(row.ticket, "us", NOON, now=NOON)
    await app.queue.note(row.ticket, text="In other words?")

    assert (await check_budget(app, row, now=NOON, language="en")).refusal
