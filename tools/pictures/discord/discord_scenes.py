"""What is shown of Discord: short scenes, each of which returns the body of a page."""

from functools import partial

from bot.views.catalog import translate
from examples.scripted_model import QUESTION, SUPPORTED, UNKNOWN
from tests.platforms.discord.seeing import words
from tools.pictures.discord.discord_page import Shown, channel, page
from tools.pictures.discord.discord_stage import ADMIN, COLLEAGUE, Stage, staged
from tools.pictures.example_company import GYM, PARKING, OrderedModel
from tools.pictures.picture_page import Done
from tools.pictures.scene import PATIENCE, Scene, played_on

HALFWAY = ("checking", "claim_supported", "claim_unknown", "claim_checking")


async def answer(stage: Stage) -> str:
    """Ana mentions the bot, and is answered in reply."""
    return await _asked(stage, QUESTION)


async def checking(stage: Stage) -> str:
    """Ana sees how far it is: one claim is confirmed, one is not, one is looked at still."""
    asked = await stage.discord.acts.mention(QUESTION)

    def halfway() -> bool:
        said = "".join(words(one, stage.discord.world) for one in stage.ours())
        return all(translate(state, "en") in said for state in HALFWAY)

    await stage.discord.until(halfway, PATIENCE)
    return _channel(stage, asked)


async def evidence(stage: Stage) -> str:
    """Ben looks at what was checked for that answer: he alone sees it."""
    await stage.discord.acts.mention(QUESTION)
    await stage.answered()
    custom_id, message = stage.button("evidence")
    await stage.discord.acts.press(custom_id, message, user=COLLEAGUE)
    *_, shown = await stage.answered(pages=2)
    return channel(stage.channel, [Done("Ben presses", "Evidence"), stage.shown(shown)], stage.names)


async def abstaining(stage: Stage) -> str:
    """Nothing answers it: the nearest pages, and somebody to ask."""
    return await _asked(stage, GYM)


async def asking_alone(stage: Stage) -> str:
    """Ana asks by command, and privately: she alone sees the answer, and may share it."""
    await stage.discord.acts.command("ask", question=PARKING, private=True)
    typed = Done("Ana types", f"/ask question: {PARKING} private: True")
    return channel(stage.channel, [typed, *map(stage.shown, await stage.answered())], stage.names)


async def settings(stage: Stage) -> str:
    """An admin looks at the channel's settings, and changes one."""
    shown = list[Shown | Done]()
    for options in ({}, {"setting": "ephemeral", "value": "on"}):
        before = len(stage.ours())
        await stage.discord.acts.command("footnote", user=ADMIN, **options)
        typed = " ".join(["/footnote", *(f"{name}: {value}" for name, value in options.items())])
        found = (await stage.answered(pages=before + 1))[before:]
        shown += [Done("An admin types", typed), *map(stage.shown, found)]
    return channel(stage.channel, shown, stage.names)


async def _asked(stage: Stage, text: str) -> str:
    asked = await stage.discord.acts.mention(text)
    await stage.answered()
    return _channel(stage, asked)


def _channel(stage: Stage, asked: str) -> str:
    shown = [stage.discord.acts.find(asked), *stage.ours()]
    return channel(stage.channel, map(stage.shown, shown), stage.names)


_on = partial(played_on, staged, page)
SCENES = (
    Scene("discord-answer", _on(answer), OrderedModel),
    Scene("discord-checking", _on(checking), partial(OrderedModel, (SUPPORTED, UNKNOWN)), minute=6),
    Scene("discord-evidence", _on(evidence), OrderedModel, minute=14),
    Scene("discord-nothing-found", _on(abstaining), minute=21),
    Scene("discord-ask", _on(asking_alone), minute=30),
    Scene("discord-settings", _on(settings), minute=44),
)
