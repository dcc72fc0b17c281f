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
async def test_an_answer_that_comes_within_seconds_is_posted_once(sign: ProgressSign) -> None:
    """Nothing stands there before that would have to be changed."""
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
async def test_an_answer_that_takes_longer_is_shown_on_its_way(failing: bool) -> None:  # noqa: FBT001 - a parameter
    """After the sign; at once where there is none."""
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
async def test_who_waits_is_shown_at_once_how_many_are_before_them(sign: ProgressSign) -> None:
    """And is told so by a message only where no sign can."""
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


async def test_a_sign_that_stays_is_shown_only_to_who_waits() -> None:
    """Once, after a second: whoever is answered sooner has nothing else to read."""
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


async def test_what_nobody_asked_for_shows_no_sign() -> None:
    async with at_work(sign=ProgressSign.SHOWN) as at:
        await at.desk.take(question(unasked=True))
        await done(at.world)

    assert at.platform.signs == []
