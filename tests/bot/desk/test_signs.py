"""Tests of the signs before an answer: a reaction at once, and a message only if the answer takes long."""

import asyncio
from typing import Any

import pytest

from bot.desk.jobs.message_writer import LASTING_SECONDS, SIGN_SECONDS
from bot.desk.platform_port import PlatformUnavailable
from bot.types import ProgressSign
from tests.bot.desk.fake_desk import question, running_desk, settle, wait_until_done

SIGNS = [ProgressSign.SHOWN, ProgressSign.WORDED]


@pytest.mark.parametrize("sign", SIGNS)
async def test_fast_answer_is_posted_without_a_progress_post(sign: ProgressSign) -> None:
    async with running_desk(sign=sign) as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        await setup.desk.take(question())
        await setup.clock.move(SIGN_SECONDS - 0.1)
        posted = list(setup.world.views)
        gate.set()
        await wait_until_done(setup.world)

    assert setup.platform.signs
    assert posted == []
    assert [view.done for view in setup.world.views] == [True]


@pytest.mark.parametrize("failing", [False, True])
async def test_progress_message_follows_the_working_sign_of_a_slow_answer(failing: bool) -> None:  # noqa: FBT001 - a parameter
    async with running_desk(sign=ProgressSign.SHOWN) as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        setup.world.faults["show_sign"] = [PlatformUnavailable("away")] if failing else []
        await setup.desk.take(question())
        await settle()
        early = list(setup.world.views)
        await setup.clock.move(SIGN_SECONDS)
        late = list(setup.world.views)
        gate.set()
        await wait_until_done(setup.world)

    assert bool(early) is failing
    assert late
    assert not any(view.done for view in late)
    assert [view.done for view in setup.world.read()] == [True]


@pytest.mark.parametrize("sign", SIGNS)
async def test_waiting_asker_sees_the_queue_position_in_a_sign_or_a_message(sign: ProgressSign) -> None:
    async with running_desk(sign=sign) as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        for number in (1, 2, 3):
            await setup.desk.take(question(number, thread="t"))
        await setup.clock.move(0.5)
        places = [view.before for view in setup.platform.signs if view.ticket > 1]
        await setup.clock.move(20.0)
        await setup.clock.move(SIGN_SECONDS)
        posts = [setup.world.read(number) for number in (2, 3)]
        gate.set()
        await wait_until_done(setup.world, 3)

    assert places == [1, 2]
    assert [bool(post) for post in posts] == [sign is ProgressSign.SHOWN] * 2
    assert all([view.done for view in setup.world.read(number)] == [True] for number in (1, 2, 3))


async def test_working_sign_that_cannot_be_removed_is_shown_only_after_a_second() -> None:
    async with running_desk(sign=ProgressSign.WORDED, edits=False, reads_back=False) as setup:
        gate = setup.system.gates["Question 2?"] = asyncio.Event()
        await setup.desk.take(question(1))
        await wait_until_done(setup.world, 1)
        soon = list(setup.platform.signs)
        await setup.desk.take(question(2))
        await setup.clock.move(LASTING_SECONDS)
        later: list[Any] = list(setup.platform.signs)
        gate.set()
        await wait_until_done(setup.world, 2)

    assert soon == []
    assert [view.ticket for view in later] == [2]
    assert [view.done for view in setup.world.views] == [True, True]


async def test_unaddressed_message_gets_no_sign() -> None:
    async with running_desk(sign=ProgressSign.SHOWN) as setup:
        await setup.desk.take(question(unasked=True))
        await wait_until_done(setup.world)

    assert setup.platform.signs == []
