"""What goes wrong around the bot: the asker is told so in one clear sentence, and the log has the cause."""

import asyncio
import logging
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from bot.desk.supervisor import Clock
from bot.types import DeliveryOutcome, QuestionState
from bot.views.catalog import translate
from pipeline.errors import ModelUnavailable
from storage.database.engine import open_database
from storage.database.queue import Queue
from storage.errors import IndexStale
from storage.record.audit_log import AuditLog
from tests.pipeline.scripted import ScriptedLLM, quoting
from tests.platforms.bots import Bot, text
from tests.platforms.contract import FakeStreet
from tests.platforms.desks import SOONER
from tests.platforms.dialects import SLACK
from tests.platforms.fake_server import serve
from tests.platforms.systems import Gated
from tests.platforms.world import ANSWERS, BUILT, MADE

UNRECORDED = translate("unrecorded", "en")


@pytest.fixture
async def bot(filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    home = Path(copytree(filled, tmp_path / "home"))
    async with serve(SLACK) as server, AsyncExitStack() as stack:
        yield Bot(FakeStreet(server, SLACK.message), home, Gated(), stack)


@dataclass
class Switch:
    """Something that is another thing while it is broken."""

    sound: Any
    broken: Any
    on: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.broken if self.on else self.sound, name)


def causes(caplog: pytest.LogCaptureFixture) -> str:
    """Return all causes that the desk logged as errors."""
    records = [record for record in caplog.records if record.levelno >= logging.ERROR]
    return "\n".join(f"{record.getMessage()} {getattr(record, 'cause', '')}" for record in records)


def told(bot: Bot) -> list[str]:
    """Return what the asker alone was told."""
    server: Any = bot.street.server  # type: ignore[attr-defined]
    return [one.plain for one in server.ours(bot.street.channels[0], by=bot.street.people[0]) if one.only]


async def read_only(bot: Bot) -> tuple[Switch, Switch]:
    """Start the bot with a queue and a log that can become read-only."""
    database = bot.stack.enter_context(open_database("", home=bot.home, read_only=True))
    bot.wrapping = {
        "queue": lambda sound: Switch(sound, Queue(database)),
        "audit": lambda sound: Switch(sound, AuditLog(database)),
    }
    await bot.start()
    made: Any = bot.app
    return made.queue, made.audit


async def test_what_cannot_be_kept_is_refused_in_a_sentence_and_answered_once_it_can(
    bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    """The event is not acknowledged, so the platform brings it again; the asker is told once."""
    queue, audit = await read_only(bot)
    queue.on = audit.on = True
    asks = await bot.ask()
    await bot.street.until(lambda: told(bot))
    await bot.street.server.redeliver()
    assert bot.street.pending == 1
    queue.on = audit.on = False
    await bot.street.server.redeliver()
    await bot.answered(asks)

    assert told(bot) == [UNRECORDED]
    assert "readonly" in causes(caplog).replace("-", "").replace(" ", "").lower()
    assert "xoxb-secret-handle" not in caplog.text


async def test_an_answer_that_cannot_be_recorded_is_not_given(bot: Bot, caplog: pytest.LogCaptureFixture) -> None:
    """Not a word of it; what stands there says why, and the log has the cause."""
    _, audit = await read_only(bot)
    audit.on = True
    asks = await bot.ask()
    await bot.street.until(lambda: UNRECORDED in text(bot.street.answer(asks)) or told(bot))
    assert ANSWERS[BUILT] not in text(bot.street.answer(asks))
    audit.on = False
    await bot.over(asks)

    assert [text(bot.street.answer(asks)) or told(bot)[0]] == [UNRECORDED]
    assert "turn cannot be recorded" in causes(caplog)


@contextmanager
def full(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [1, 30_000, 60_000, 90_000])
async def test_a_full_disk_loses_nothing_and_says_so(bot: Bot, caplog: pytest.LogCaptureFixture, room: int) -> None:
    """However little room there was left: told once, and answered once there is room again, or answered at once."""
    await bot.start()
    with full(room):
        asks = await bot.ask()
        sorry = lambda: told(bot) or UNRECORDED in text(bot.street.answer(asks))  # noqa: E731
        await bot.street.until(lambda: sorry() or ANSWERS[BUILT] in text(bot.street.answer(asks)))
        failed = sorry()
    await bot.street.server.redeliver()
    if bot.street.pending or not failed:
        await bot.street.until(lambda: ANSWERS[BUILT] in text(bot.street.answer(asks)))
    await bot.over(asks)

    assert len(told(bot)) <= 1
    if failed:
        assert "Error" in causes(caplog)
    assert text(bot.street.answer(asks)).count(ANSWERS[BUILT]) + text(bot.street.answer(asks)).count(UNRECORDED) <= 1


@dataclass
class Stale:
    """A store whose indexes cannot be searched."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def search(self, *asked: Any, **more: Any) -> Any:
        del asked, more
        raise IndexStale("The index is locked by another process.", hint="stop it")


async def test_an_index_that_cannot_be_searched_is_said(bot: Bot) -> None:
    """An outage never looks like “I found nothing”; the record has the cause."""
    bot.wrapping = {"passages": Stale}
    await bot.start()
    asks = await bot.ask()

    assert text(await bot.answered(asks)) == translate("failed", "en")
    row = await bot.over(asks)
    closed = [entry.body for entry in await bot.app.audit.turn(row.turn_id) if entry.kind == "turn_closed"]
    assert "locked by another process" in closed[0]["failure"]["message"]


@pytest.mark.parametrize("system", ["wikichat", "wikichat-fast"])
async def test_a_model_that_is_down_is_said(bot: Bot, system: str) -> None:
    """In the asker's language; the next question is answered as if nothing had been."""
    down = ModelUnavailable("no answer from 127.0.0.1", hint="start it")
    bot.changes = {"llm": ScriptedLLM(dict.fromkeys(("query", "generate", "summarise", "draft", "split"), down))}
    await bot.start(system=system)
    asks = await bot.ask()

    assert text(await bot.answered(asks)) == f"{translate('model_unavailable', 'en')} {translate('again_later', 'en')}"


async def test_a_system_that_there_is_not_answers_in_no_channel(bot: Bot) -> None:
    """Nor does the model alone: it is none."""
    await bot.start(channel=[{"id": bot.id(), "system": "model-alone"}])
    asks = await bot.ask()

    assert text(await bot.answered(asks)) == translate("failed", "en")
    assert bot.app
    assert await bot.app.audit.turns(1) == ()


class PanicException(BaseException):
    """What a library in Rust raises where it panics: no `Exception`."""


FAULTS = (PanicException("Num bits must be <= 32. Was 177."), BaseException("?"), MemoryError(), RecursionError("deep"))


@dataclass
class Breaking:
    """Does what `inner` does, until there is a fault."""

    inner: Any
    method: str = ""
    fault: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        return self if name == self.method else getattr(self.inner, name)

    def __call__(self, *given: Any, **more: Any) -> Any:
        if self.fault:
            raise self.fault
        return (getattr(self.inner, self.method) if self.method else self.inner)(*given, **more)


@pytest.mark.parametrize("where", ["search", "model", "support", "say"])
async def test_whatever_breaks_a_turn_it_failed_on_record_and_the_asker_is_told(bot: Bot, where: str) -> None:
    """Also what is no `Exception`; nothing is left in the queue, and the next question is answered."""
    breaking = Breaking(None, "search" if where == "search" else "")

    def wrap(inner: Any) -> Any:
        breaking.inner = inner
        return breaking

    if where == "model":
        bot.changes = {"llm": ScriptedLLM({**quoting(), "draft": wrap(quoting()["draft"])})}
    elif where == "say":
        quote = bot.system.inner
        bot.system.inner = lambda talk, kit: quote(talk, replace(kit, say=wrap(kit.say)))
    else:
        bot.wrapping = {"passages" if where == "search" else "supports": wrap}
    await bot.start(system="wikichat-fast" if where == "model" else "extractive")
    assert bot.app
    for breaking.fault in FAULTS:
        asks = await bot.ask()
        assert text(await bot.answered(asks)) == translate("failed", "en")
        row = await bot.done(asks)
        closed = [entry.body for entry in await bot.app.audit.turn(row.turn_id) if entry.kind == "turn_closed"]
        assert [body["status"] for body in closed] == ["failed"]
        assert type(breaking.fault).__name__ in closed[0]["failure"]["message"]

    breaking.fault = None
    asks = await bot.ask()
    assert ANSWERS[BUILT] in text(await bot.answered(asks))
    await bot.done(asks)
    assert await bot.app.queue.open("nobody", datetime.now(UTC), sole=True) == ()


@pytest.mark.parametrize("days", [-4_000, 4_000])
async def test_a_clock_that_jumps_loses_and_repeats_nothing(bot: Bot, days: int) -> None:
    """While a question runs, and while it is settled: the next start does not take it for another's either."""
    jumped = timedelta()
    bot.street.clock = Clock(lambda: datetime.now(UTC) + jumped, lambda seconds: asyncio.sleep(seconds / SOONER))
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.system.until_asked()
    jumped = timedelta(days=days)
    other = await bot.ask(MADE, channel=1)
    await bot.answered(other)
    await bot.system.open()
    await bot.answered(asks)
    row = await bot.over(asks)

    assert (row.state, row.outcome) == (QuestionState.DONE, DeliveryOutcome.DELIVERED)
    assert text(bot.street.answer(asks)).count(ANSWERS[BUILT]) == 1
    assert bot.system.asked.count(BUILT) == 1
