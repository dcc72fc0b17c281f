"""An erasure with messages also deletes the bot's posts about the erased questions."""

import pytest

from bot.views.catalog import translate
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.record_check import verify_record
from storage.types import EntryKind
from tests.platforms.bots import Bot, text
from tests.platforms.example_app import ANSWERS, BUILT, MADE
from tests.platforms.fake_server import Fault, refused
from tests.platforms.test_changed_citations import CHANGED, Watch, answered


async def erase(bot: Bot, person: int = 0) -> int:
    """Erase the questions of a user, as the command does; return how many messages are to be removed."""
    assert bot.app
    erasure, target = RecordErasure(bot.app.manifest.database), ErasureTarget(person=bot.user_id(person))
    planned = await erasure.plan(target, messages=True)
    done = await erasure.erase(target, why="asked for", by="terminal", messages=True)
    assert planned.messages == done.messages
    assert (await erasure.plan(target, messages=True)).messages == 0
    return done.messages


async def test_erasure_removes_an_answer_with_its_notes_and_calls(bot: Bot) -> None:
    await bot.start(record={"recheck": "note"}, channel=[{"id": bot.id(), "ask": [bot.user_id(2)]}])
    watch, asks = Watch(bot), await answered(bot)
    others = await bot.ask(MADE, person=1)
    await bot.answered(others)
    await bot.press("ask", asks)
    await bot.workspace.until(lambda: any(bot.workspace.users[2] in ping for ping in bot.workspace.pings))
    await watch.look(CHANGED)
    row = await bot.done(asks)
    assert "\n".join(bot.posted()).count(BUILT) >= 2

    assert await erase(bot) == 3
    await bot.stop()
    await bot.start()
    assert bot.app
    left = await bot.done(asks, "retracted")
    edits = [entry.body for entry in await bot.app.audit.turn(row.turn_id) if entry.kind is EntryKind.EDITED]

    assert BUILT not in "\n".join(bot.posted())
    assert ANSWERS[BUILT] not in "\n".join(bot.posted())
    assert ANSWERS[MADE] in text(bot.workspace.answer(others))
    assert (left.user, left.body["text"]) == ("", "")
    assert [edits[0][key] for key in ("retracted", "by", "why")] == [True, "terminal", "asked for"]
    assert (len(edits[1]["removed"]), "why" in edits[1]) == (3, False)
    assert (await verify_record(bot.app.manifest.database)).findings == ()


async def test_erasure_removes_a_shared_answer(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask(only_asker=True)
    await bot.answered(asks)
    await bot.workspace.until(lambda: any("share" in message.buttons for message in bot.workspace.answer(asks)))
    await bot.press("share", asks)
    here, (asker, other, _) = bot.workspace.channels[0], bot.workspace.users
    await bot.workspace.until(lambda: translate("share_done", "en") in text(bot.workspace.seen(here, by=asker)))
    assert ANSWERS[BUILT] in text(bot.workspace.seen(here, by=other))

    assert await erase(bot) == 1
    await bot.stop()
    await bot.start()
    await bot.workspace.until(lambda: bot.workspace.seen(here, by=other) == ())


@pytest.mark.parametrize("bot", ["slack", "discord"], indirect=True)
async def test_messages_whose_deletion_is_refused_are_recorded(bot: Bot) -> None:
    await bot.start()
    asks = await answered(bot)
    row = await bot.done(asks)
    call, fault = {
        "slack": ("chat.delete", refused("cant_delete_message")),
        "discord": ("delete_message", Fault(403, code=50013)),
    }[bot.workspace.name]
    bot.server.faults[call].append(fault)

    assert await erase(bot) == 1
    await bot.stop()
    await bot.start()
    await bot.done(asks, "retracted")
    assert bot.app
    last = [entry.body for entry in await bot.app.audit.turn(row.turn_id) if entry.kind is EntryKind.EDITED][-1]
    assert (last["removed"], last["standing"], bool(last["why"])) == ([], list(row.posted), True)
