"""Faults of disk, model, index and code: the asker gets one sentence, and log and record contain the cause."""

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.views.catalog import translate
from pipeline.errors import ModelUnavailable
from storage.database.engine import open_database
from storage.errors import IndexStale
from storage.record.audit_log import AuditLog
from storage.types import EntryKind
from tests.fakes import full_disk
from tests.pipeline.scripted import ScriptedLLM, quoting
from tests.platforms.bots import Bot, text
from tests.platforms.example_app import ANSWERS, BUILT, MADE

UNRECORDED, FAILED = translate("unrecorded", "en"), translate("failed", "en")
pytestmark = pytest.mark.parametrize("bot", ["slack"], indirect=True)


@dataclass
class Switch:
    """Delegates to `inner`, or to `broken` once that is set."""

    inner: Any
    broken: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.broken or self.inner, name)


def logged_causes(caplog: pytest.LogCaptureFixture) -> str:
    records = [record for record in caplog.records if record.levelno >= logging.ERROR]
    return "\n".join(f"{record.getMessage()} {getattr(record, 'cause', '')}" for record in records)


async def test_unrecorded_answer_is_not_shown(bot: Bot, caplog: pytest.LogCaptureFixture) -> None:
    database = bot.stack.enter_context(open_database("", home=bot.home, read_only=True))
    bot.wrapping = {"audit": Switch}
    await bot.start()
    bot.app.audit.broken = AuditLog(database)
    asks = await bot.ask()
    await bot.until_posted(UNRECORDED)
    assert ANSWERS[BUILT] not in "".join(bot.posted())
    bot.app.audit.broken = None
    await bot.over(asks)

    assert "".join(bot.posted()).count(UNRECORDED) == 1
    assert ANSWERS[BUILT] not in text(bot.workspace.answer(asks))
    assert "turn cannot be recorded" in logged_causes(caplog)


@pytest.mark.parametrize("room", [1, 30_000, 60_000, 90_000])
async def test_full_disk_fails_only_the_questions_asked_meanwhile(
    bot: Bot, caplog: pytest.LogCaptureFixture, room: int
) -> None:
    await bot.start()
    with full_disk(room):
        await bot.ask()
        await bot.server.until(lambda: {UNRECORDED, ANSWERS[BUILT]} & set(_sentences(bot)))
        failed = UNRECORDED in _sentences(bot)
        await bot.workspace.settled()

    assert "Error" in logged_causes(caplog) or not failed
    assert sum(_sentences(bot).count(one) for one in (UNRECORDED, ANSWERS[BUILT])) == 1
    assert ANSWERS[MADE] in text(await bot.answered(await bot.ask(MADE, channel=1)))


def _sentences(bot: Bot) -> list[str]:
    return [one for one in (UNRECORDED, ANSWERS[BUILT]) for shown in bot.posted() if one in shown]


@pytest.mark.parametrize("system", ["wikichat", "wikichat-fast"])
async def test_quotation_is_posted_with_a_note_if_the_model_is_unavailable(bot: Bot, system: str) -> None:
    down = ModelUnavailable("no answer from 127.0.0.1", hint="start it")
    bot.changes = {"llm": ScriptedLLM(dict.fromkeys(("query", "generate", "summarise", "draft", "split"), down))}
    await bot.start(system=system)

    note, quoted, *_ = text(await bot.answered(await bot.ask())).splitlines()
    assert note == f"{translate('model_unavailable', 'en')} {translate('only_quoted', 'en')}"
    assert quoted.startswith("Skarholm lighthouse was built in 1887.")


async def test_unknown_system_fails_the_question(bot: Bot) -> None:
    """The model alone is not a system."""
    await bot.start(channel=[{"id": bot.id(), "system": "model-alone"}])

    assert text(await bot.answered(await bot.ask())) == FAILED
    assert await bot.app.audit.turns(1) == ()


class PanicException(BaseException):
    """Like the exception of a panic in a Rust library, which is not an `Exception`."""


FAULTS = (PanicException("Num bits must be <= 32. Was 177."), BaseException("?"), MemoryError(), RecursionError("deep"))


@dataclass
class Breaking:
    """Delegates to `inner`, or raises the fault if one is set."""

    inner: Any
    method: str = ""
    fault: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        return self if name == self.method else getattr(self.inner, name)

    def __call__(self, *given: Any, **more: Any) -> Any:
        if self.fault:
            raise self.fault
        return (getattr(self.inner, self.method) if self.method else self.inner)(*given, **more)


async def test_unreadable_index_fails_the_question(bot: Bot) -> None:
    """An outage never looks like “I found nothing”."""
    stale = IndexStale("The index is locked by another process.", hint="stop it")
    bot.wrapping = {"passages": lambda inner: Breaking(inner, "search", stale)}
    await bot.start()
    asks = await bot.ask()

    assert text(await bot.answered(asks)) == FAILED
    (closed,) = await bot.bodies(await bot.over(asks), EntryKind.TURN_CLOSED)
    assert "locked by another process" in closed["failure"]["message"]


@pytest.mark.parametrize("place", ["search", "model", "support", "say"])
async def test_any_exception_fails_only_its_own_turn(bot: Bot, place: str) -> None:
    """Even one that is not an `Exception`. The queue stays empty, and the next question is answered."""
    breaking = Breaking(None, "search" if place == "search" else "")

    def wrap(inner: Any) -> Any:
        breaking.inner = inner
        return breaking

    if place == "model":
        bot.changes = {"llm": ScriptedLLM({**quoting(), "draft": wrap(quoting()["draft"])})}
    elif place == "say":
        quote = bot.system.inner
        bot.system.inner = lambda talk, kit: quote(talk, replace(kit, say=wrap(kit.say)))
    else:
        bot.wrapping = {"passages" if place == "search" else "supports": wrap}
    await bot.start(system="wikichat-fast" if place == "model" else "extractive")
    for breaking.fault in FAULTS:
        asks = await bot.ask()
        assert text(await bot.answered(asks)) == FAILED
        (closed,) = await bot.bodies(await bot.done(asks), EntryKind.TURN_CLOSED)
        assert closed["status"] == "failed"
        assert type(breaking.fault).__name__ in closed["failure"]["message"]

    breaking.fault = None
    asks = await bot.ask()
    assert ANSWERS[BUILT] in text(await bot.answered(asks))
    await bot.done(asks)
    assert await bot.app.queue.open("nobody", datetime.now(UTC), sole=True) == ()
