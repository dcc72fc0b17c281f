"""What an asker sees before anything is posted: a sign at once, and a message only where the answer takes long."""

import asyncio
from typing import Any

import pytest

from bot.desk.jobs.message_writer import LASTING_SECONDS, SIGN_SECONDS
from bot.desk.platform_port import PlatformUnavailable
from bot.types import ProgressSign
from tests.bot.desk.desked import at_work, done, question, settle

SIGNS = [ProgressSign.SHOWN, ProgressSign.WORDED]


@pytest.mark.parametrize("sign", SIGNS)
async def test_fast_answer_is_posted_once(sign: ProgressSign) -> None:
    async with at_work(sign=sign) as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await at.waits.move(SIGN_SECONDS - 0.1)
        posted = list(at.world.views)
        gate.set()
        await done(at.world)

    assert at.platform.signs
    assert posted == []
    assert [view.done for view in at.world.views] == [True]


@pytest.mark.parametrize("failing", [False, True])
async def test_slow_answer_shows_progress_after_the_sign(failing: bool) -> None:  # noqa: FBT001 - a parameter
    async with at_work(sign=ProgressSign.SHOWN) as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        at.world.faults["show_sign"] = [PlatformUnavailable("away")] if failing else []
        await at.desk.take(question())
        await settle()
        early = list(at.world.views)
        await at.waits.move(SIGN_SECONDS)
        late = list(at.world.views)
        gate.set()
        await done(at.world)

    assert bool(early) is failing
    assert late
    assert not any(view.done for view in late)
    assert [view.done for view in at.world.read()] == [True]


@pytest.mark.parametrize("sign", SIGNS)
async def test_waiting_asker_sees_the_position_by_sign_or_message(sign: ProgressSign) -> None:
    async with at_work(sign=sign) as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        for number in (1, 2, 3):
            await at.desk.take(question(number, thread="t"))
        await at.waits.move(0.5)
        places = [view.before for view in at.platform.signs if view.ticket > 1]
        await at.waits.move(20.0)
        await at.waits.move(SIGN_SECONDS)
        told = [at.world.read(number) for number in (2, 3)]
        gate.set()
        await done(at.world, 3)

    assert places == [1, 2]
    assert [bool(one) for one in told] == [sign is ProgressSign.SHOWN] * 2
    assert all([view.done for view in at.world.read(number)] == [True] for number in (1, 2, 3))


async def test_permanent_sign_is_shown_only_after_a_second() -> None:
    async with at_work(sign=ProgressSign.WORDED, edits=False, reads_back=False) as at:
        gate = at.system.gates["Question 2?"] = asyncio.Event()
        await at.desk.take(question(1))
        await done(at.world, 1)
        soon = list(at.platform.signs)
        await at.desk.take(question(2))
        await at.waits.move(LASTING_SECONDS)
        later: list[Any] = list(at.platform.signs)
        gate.set()
        await done(at.world, 2)

    assert soon == []
    assert [view.ticket for view in later] == [2]
    assert [view.done for view in at.world.views] == [True, True]


async def test_unaddressed_message_gets_no_sign() -> None:
    async with at_work(sign=ProgressSign.SHOWN) as at:
        await at.desk.take(question(unasked=True))
        await done(at.world)

    assert at.platform.signs == []
