"""A channel's settings change while the bot runs: answers use the corpora, tone and effort of their time."""

from storage.types import EntryKind
from tests.platforms.bots import Bot, text
from tests.platforms.example_app import ANSWERS, BUILT


async def test_narrowed_channel_withholds_an_answer_in_progress(bot: Bot) -> None:
    bot.system.later.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.system.until_said(BUILT)
    await bot.workspace.until(lambda: ANSWERS[BUILT] in text(bot.workspace.answer(asks)))
    assert bot.app
    await bot.app.overrides.set(bot.id(), "corpora", [], by="an admin", was=None)
    await bot.system.open()
    shown = text(await bot.answered(asks))
    row = await bot.row(asks)
    (last, closed), (first, _) = await bot.app.audit.turns(2)

    assert "1887" not in shown
    assert "Skarholm lighthouse" not in shown.replace(BUILT, "")
    assert (last.turn_id, last.body["corpora"]) == (row.turn_id, {})
    assert closed
    assert closed.body["citations"] == []
    withheld = [entry.body for entry in await bot.app.audit.turn(first.turn_id) if entry.kind is EntryKind.EDITED]
    assert [body["withheld"] for body in withheld] == [True]


async def test_channel_tone_and_effort_are_recorded(bot: Bot) -> None:
    own = {"id": bot.id(), "tone": "Solemn.", "effort": "thorough"}
    await bot.start(tone="Brief.", effort="quick", channel=[own])
    assert bot.app
    await bot.answered(await bot.ask())
    for key, value in (("tone", ""), ("effort", "normal")):
        await bot.app.overrides.set(bot.id(), key, value, by="an admin", was=None)
    await bot.answered(await bot.ask())
    await bot.answered(await bot.ask(channel=1))

    opened = [(one.body["tone"], one.body["effort"]) for one, _ in await bot.app.audit.turns(3)]
    assert opened == [("Brief.", "quick"), ("", "normal"), ("Solemn.", "thorough")]
