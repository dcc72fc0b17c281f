"""Erasing with messages: what the bot posted about it goes from channels too, whatever ends meanwhile."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from bot.views.catalog import translate
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.record_check import verify_record
from storage.types import EntryKind
from tests.platforms.bots import Bot, text
from tests.platforms.discord.faults import Fault
from tests.platforms.houses import HOUSES, TRIED
from tests.platforms.slack.faults import refused
from tests.platforms.systems import Gated
from tests.platforms.test_changed_citations import CHANGED, Watch, answered
from tests.platforms.world import ANSWERS, BUILT, MADE


@pytest.fixture(params=TRIED)
async def bot(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    async with HOUSES[request.param]() as street, AsyncExitStack() as stack:
        yield Bot(street, home, Gated(), stack)


def name(bot: Bot, person: int) -> str:
    return f"{bot.street.name}:{bot.street.workspace}/{bot.street.people[person]}"


async def erase(bot: Bot, person: int = 0) -> int:
    """Erase what somebody asked, as the command does beside the bot; return how many messages are to go."""
    assert bot.app
    erasure, target = RecordErasure(bot.app.manifest.database), ErasureTarget(person=name(bot, person))
    planned = await erasure.plan(target, messages=True)
    done = await erasure.erase(target, why="asked for", by="terminal", messages=True)
    assert planned.messages == done.messages
    assert (await erasure.plan(target, messages=True)).messages == 0
    return done.messages


async def test_an_answer_goes_with_all_that_stands_beside_it_and_others_stay(bot: Bot) -> None:
    """A note, and a call that repeats the question: at the next start, where the bot was stopped."""
    await bot.start(record={"recheck": "note"}, channel=[{"id": bot.id(), "ask": [name(bot, 2)]}])
    watch, asks = Watch(bot), await answered(bot)
    others = await bot.ask(MADE, person=1)
    await bot.answered(others)
    await bot.press("ask", asks)
    await bot.street.until(lambda: any(bot.street.people[2] in ping for ping in bot.street.pings))
    await watch.look(CHANGED)
    row = await bot.done(asks)
    assert "\n".join(watch.posted()).count(BUILT) >= 2

    assert await erase(bot) == 3
    await bot.stop()
    await bot.start()
    assert bot.app
    left = await bot.done(asks, "retracted")
    edits = [one.body for one in await bot.app.audit.turn(row.turn_id) if one.kind is EntryKind.EDITED]

    assert BUILT not in "\n".join(watch.posted())
    assert ANSWERS[BUILT] not in "\n".join(watch.posted())
    assert ANSWERS[MADE] in text(bot.street.answer(others))
    assert (left.user, left.body["text"]) == ("", "")
    assert [edits[0][key] for key in ("retracted", "by", "why")] == [True, "terminal", "asked for"]
    assert (len(edits[1]["removed"]), "why" in edits[1]) == (3, False)
    assert (await verify_record(bot.app.manifest.database)).findings == ()


async def test_what_the_asker_alone_was_shown_goes_where_they_shared_it(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask(only_asker=True)
    await bot.answered(asks)
    await bot.street.until(lambda: any("share" in one.buttons for one in bot.street.answer(asks)))
    await bot.press("share", asks)
    here, (asker, other, _) = bot.street.channels[0], bot.street.people
    await bot.street.until(lambda: translate("share_done", "en") in text(bot.street.seen(here, by=asker)))
    assert ANSWERS[BUILT] in text(bot.street.seen(here, by=other))

    assert await erase(bot) == 1
    await bot.stop()
    await bot.start()
    await bot.street.until(lambda: bot.street.seen(here, by=other) == ())


@pytest.mark.parametrize("bot", ["slack", "discord"], indirect=True)
async def test_what_the_platform_will_not_remove_is_on_record(bot: Bot) -> None:
    await bot.start()
    asks = await answered(bot)
    row = await bot.done(asks)
    street: Any = bot.street
    if street.name == "slack":
        street.slack.faults["chat.delete"].append(refused("cant_delete_message"))
    else:
        street.discord.faults["delete_message"].append(Fault(403, code=50013))

    assert await erase(bot) == 1
    await bot.stop()
    await bot.start()
    await bot.done(asks, "retracted")
    assert bot.app
    last = [one.body for one in await bot.app.audit.turn(row.turn_id) if one.kind is EntryKind.EDITED][-1]
    assert (last["removed"], last["standing"], bool(last["why"])) == ([], list(row.posted), True)
