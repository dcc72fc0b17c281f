"""Every call of a conversation is answered oddly once: each question ends with one answer, or waits in the queue."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.desk.supervisor import Clock
from bot.views.catalog import translate
from storage.types import QueuedQuestion
from tests.platforms.discord import faults as discord_faults
from tests.platforms.discord import joining as discord_joining
from tests.platforms.discord import talking as discord_talking
from tests.platforms.discord import world as discord_world
from tests.platforms.slack import faults as slack_faults
from tests.platforms.slack import joining as slack_joining
from tests.platforms.slack import talking as slack_talking
from tests.platforms.slack import world as slack_world
from tests.platforms.world import ANSWERS, BUILT, MADE, RISES, open_world
from tests.thorough import THOROUGH

TIMES = 200
NTHS = (1, 2, 3) if THOROUGH else (1,)
"""Which call of each kind is answered oddly."""
QUICK = Clock(sleep=lambda seconds: asyncio.sleep(seconds / 400))
PLATFORMS = {"slack": slack_talking.talking, "discord": discord_talking.talking}
DENIED: dict[str, Any] = {
    "slack": slack_faults.refused("invalid_auth"),
    "discord": discord_faults.Fault(401, code=0),
}
STATUSES = {"proxy": 403, "locked out by a proxy": 401, "timed out": 408, "limited": 429, "page": 200, "broken": 503}
KINDS = [*STATUSES, "denied", "cut", "lost", "page of what was done", "unfit"]
IN_DOUBT = {"timed out", "page", "broken", "cut", "lost", "page of what was done"}
"""After these nobody knows whether it was posted, where Slack cannot be asked: what one person alone sees."""
WAITS = ("Looking", "[Stop]", "thinking")


def fault(platform: str, kind: str) -> Any:
    """Return how a call fails."""
    made = slack_faults.Fault if platform == "slack" else discord_faults.Fault
    match kind:
        case "denied":
            return DENIED[platform]
        case "cut" | "lost":
            return made(0, done=kind == "lost")
        case "page of what was done":
            return made(200, done=True)
        case "unfit":
            return slack_faults.refused("invalid_blocks") if platform == "slack" else made(400, code=50035)
    return made(STATUSES[kind], page=True)


class Once(dict[str, list[Any]]):
    """Lets the n-th call of each kind fail, or every one."""

    def __init__(self, how: Any, nth: int = 1, *, always: bool = False) -> None:
        super().__init__()
        self._how, self._nth, self._always = how, nth, always
        self._seen = Counter[str]()

    def get(self, name: str, default: Any = None) -> Any:
        del default
        self._seen[name] += 1
        if self._always or self._seen[name] == self._nth:
            self[name] = [self._how]
        return super().get(name, [])


@asynccontextmanager
async def opened(platform: str, home: Path, filled: Path) -> AsyncIterator[Any]:
    """Run a bot before its platform, and give what goes on there."""
    joined = {"slack": slack_joining.joined, "discord": discord_joining.joined}[platform]
    times: dict[str, float] = {"times": TIMES}
    async with PLATFORMS[platform](home, filled, **times) as talk:
        talk.fake, talk.me = getattr(talk, platform), {"slack": slack_world.BOT, "discord": discord_world.BOT}[platform]

        async def start() -> None:
            talk.app = talk.system.answering(talk.stack.enter_context(open_world(home)))
            await talk.stack.enter_async_context(joined(talk.app, talk.fake, clock=QUICK))

        talk.begin = start
        yield talk


async def done(talk: Any, ticket: int, text: str) -> QueuedQuestion:
    """Wait until a question is done with, in its words."""
    async with asyncio.timeout(60):
        row = None
        while row is None or (row.state, row.body["text"]) != ("done", text):
            row = await talk.app.queue.get(ticket)
            await asyncio.sleep(0.01)
    found: QueuedQuestion = row
    return found


async def closed(talk: Any, ticket: int) -> None:
    """Wait until a question's turn is over, whether or not anybody could be told."""
    async with asyncio.timeout(60):
        kinds: set[str] = set()
        while "turn_closed" not in kinds:
            await asyncio.sleep(0.01)
            row = await talk.app.queue.get(ticket)
            kinds = {entry.kind for entry in await talk.app.audit.turn(row.turn_id)} if row and row.turn_id else kinds


async def command(talk: Any, platform: str) -> None:
    """Ask by a command."""
    await (talk.acts.command("/ask", MADE) if platform == "slack" else talk.acts.command("ask", question=MADE))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nth", NTHS)
async def test_every_kind_of_call_is_answered_oddly_once(
    platform: str, kind: str, nth: int, filled: Path, tmp_path: Path
) -> None:
    """A mention, a command, an edit: each is answered, once, and nothing promises an answer that does not come."""
    async with opened(platform, tmp_path / "home", filled) as talk:
        await talk.begin()
        talk.fake.faults = Once(fault(platform, kind), nth)
        asked = await talk.acts.mention(BUILT)
        assert (await done(talk, 1, BUILT)).outcome == "delivered"
        await command(talk, platform)
        row = await done(talk, 2, MADE)
        doubtful = platform == "slack" and kind in IN_DOUBT
        assert row.outcome in ({"delivered", "uncertain"} if doubtful else {"delivered"})
        await talk.acts.edit(asked, f"<@{talk.me}> {RISES}")
        await done(talk, 1, RISES)
        seen = talk.sees()
        assert (seen.count(ANSWERS[BUILT]), seen.count(ANSWERS[RISES])) == (0, 1)
        assert seen.count(ANSWERS[MADE]) == 1 or (row.outcome == "uncertain" and ANSWERS[MADE] not in seen)
        assert not [one for one in WAITS if one in seen]
        assert translate("failed", "en") not in seen


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("when", ["before", "amid"])
async def test_who_is_denied_for_good_leaves_it_to_the_next_start(
    platform: str, when: str, filled: Path, tmp_path: Path
) -> None:
    """In mid answer, or before it was asked: nothing is lost, and what stood there meanwhile becomes the answer."""
    denied = Once(DENIED[platform], always=True)
    async with opened(platform, tmp_path / "home", filled) as talk:
        await talk.begin()
        if when == "before":
            talk.fake.faults = denied
        else:
            talk.system.shut.add(BUILT)
        asked = await talk.acts.mention(BUILT)
        if when == "amid":
            await talk.system.until_asked()
            talk.fake.faults = denied
            await talk.system.open()
        await closed(talk, 1)
        await talk.stop()
        talk.fake.faults = {}
        await talk.begin()
        assert (await done(talk, 1, BUILT)).outcome == "delivered"
        assert talk.sees().count(ANSWERS[BUILT]) == len(talk.acts.answers(asked)) == 1
        assert not [one for one in WAITS if one in talk.sees()]
