"""Each call of a conversation gets an unusual response once: every question still ends with one answer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.desk.supervisor import Clock
from bot.views.catalog import translate
from storage.types import EntryKind, QueuedQuestion
from tests.platforms.bots import Bot, bot_in, eventually
from tests.platforms.example_app import ANSWERS, BUILT, MADE, RISES
from tests.platforms.fake_server import Fault, refused
from tests.platforms.workspaces import PLATFORMS
from tests.thorough import THOROUGH

NTHS = (1, 2, 3) if THOROUGH else (1,)
"""Which call of each kind gets the unusual response."""
DENIED = {"slack": refused("invalid_auth"), "discord": Fault(401, code=0)}
UNFIT = {"slack": refused("invalid_blocks"), "discord": Fault(400, code=50035)}
KINDS: dict[str, Fault | dict[str, Fault]] = {
    "proxy": Fault(403, page=True),
    "unauthorized by a proxy": Fault(401, page=True),
    "timed out": Fault(408, page=True),
    "limited": Fault(429, page=True),
    "page": Fault(200, page=True),
    "broken": Fault(503, page=True),
    "denied": DENIED,
    "cut": Fault(0),
    "lost": Fault(0, done=True),
    "page of what was done": Fault(200, done=True),
    "unfit": UNFIT,
}
IN_DOUBT = {"timed out", "page", "broken", "cut", "lost", "page of what was done"}
"""After these it is unknown whether a private message was posted: Slack cannot be asked."""
WAITS = ("Looking", "[Stop]", "thinking")


class FaultOnce(dict[str, list[Fault]]):
    """Lets the n-th call of each kind fail, or every one."""

    def __init__(self, fault: Fault, nth: int = 1, *, always: bool = False) -> None:
        super().__init__()
        self._fault, self._nth, self._always = fault, nth, always
        self._counts = Counter[str]()

    def get(self, name: str, default: Any = None) -> Any:
        del default
        self._counts[name] += 1
        if self._always or self._counts[name] == self._nth:
            self[name] = [self._fault]
        return super().get(name, [])


@pytest.fixture(params=["slack", "discord"])
async def bot(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    opening, clock = PLATFORMS[request.param](speed=200)(), Clock(sleep=lambda seconds: asyncio.sleep(seconds / 400))
    async with bot_in(opening, filled, tmp_path / "home", every=False, desk_clock=clock) as opened:
        yield opened


def fault_of(bot: Bot, kind: str) -> Fault:
    fault = KINDS[kind]
    return fault if isinstance(fault, Fault) else fault[bot.workspace.name]


async def until_done(bot: Bot, ticket: int, text: str) -> QueuedQuestion:
    """Wait until a question with this text is done, and return its row."""

    async def is_done() -> bool:
        return (await bot.outcome(ticket)).body["text"] == text

    await eventually(is_done)
    return await bot.outcome(ticket)


async def until_closed(bot: Bot, ticket: int) -> None:
    """Wait until a question's turn is over, whether or not the user got a message."""

    async def is_closed() -> bool:
        row = await bot.app.queue.get(ticket)
        return bool(row and row.turn_id and await bot.bodies(row, EntryKind.TURN_CLOSED))

    await eventually(is_closed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nth", NTHS)
async def test_unusual_response_to_any_call_leaves_one_answer(bot: Bot, kind: str, nth: int) -> None:
    """An unusual response to any call, for a mention, a command and an edit. No progress sign is left behind."""
    is_slack = bot.workspace.name == "slack"
    await bot.start()
    bot.server.faults = FaultOnce(fault_of(bot, kind), nth)
    asked = await bot.ask()
    assert (await until_done(bot, 1, BUILT)).outcome == "delivered"
    await (bot.people.command("/ask", MADE) if is_slack else bot.people.command("ask", question=MADE))
    row = await until_done(bot, 2, MADE)
    assert row.outcome in ({"delivered", "uncertain"} if is_slack and kind in IN_DOUBT else {"delivered"})
    await bot.workspace.rewrite(asked, RISES)
    await until_done(bot, 1, RISES)
    seen = bot.sees()
    assert (seen.count(ANSWERS[BUILT]), seen.count(ANSWERS[RISES])) == (0, 1)
    assert seen.count(ANSWERS[MADE]) == 1 or (row.outcome == "uncertain" and ANSWERS[MADE] not in seen)
    assert not [sign for sign in WAITS if sign in seen]
    assert translate("failed", "en") not in seen


@pytest.mark.parametrize("moment", ["before", "during"])
async def test_denied_token_leaves_the_question_to_the_next_start(bot: Bot, moment: str) -> None:
    """The message in progress becomes the answer."""
    denied = FaultOnce(DENIED[bot.workspace.name], always=True)
    await bot.start()
    if moment == "before":
        bot.server.faults = denied
    else:
        bot.system.shut.add(BUILT)
    asked = await bot.ask()
    if moment == "during":
        await bot.system.until_asked()
        bot.server.faults = denied
        await bot.system.open()
    await until_closed(bot, 1)
    await bot.stop()
    bot.server.faults = {}
    await bot.start()
    assert (await until_done(bot, 1, BUILT)).outcome == "delivered"
    assert bot.sees().count(ANSWERS[BUILT]) == len(bot.people.answers(asked)) == 1
    assert not [sign for sign in WAITS if sign in bot.sees()]
