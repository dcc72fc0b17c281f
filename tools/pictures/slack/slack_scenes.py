"""What is shown of Slack: short scenes, each of which returns a page."""

from functools import partial

from examples.scripted_model import QUESTION, SUPPORTED, UNKNOWN
from tools.pictures.example_company import GYM, MEALS, PARKING, STATEMENTS, OrderedModel
from tools.pictures.picture_page import Done
from tools.pictures.scene import PATIENCE, Scene, played_on
from tools.pictures.slack.slack_page import Shown, channel, modal, page, thread
from tools.pictures.slack.slack_stage import ADMIN, Stage, staged


async def answer(stage: Stage) -> str:
    """Ana mentions the bot, and is answered in the thread."""
    return await _asked(stage, QUESTION)


async def evidence(stage: Stage) -> str:
    """Ben looks at what was checked for that answer."""
    await _asked(stage, QUESTION)
    await stage.slack.acts.press("footnote:evidence", stage.ours()[-1].ts, user="U2")
    return modal(await stage.modal("U2"), stage.names)


async def disagreeing(stage: Stage) -> str:
    """Two pages say different things: both are given, with their dates, the newer first."""
    return await _asked(stage, MEALS)


async def abstaining(stage: Stage) -> str:
    """Nothing answers it: the nearest pages, and somebody to ask."""
    return await _asked(stage, GYM)


async def checking(stage: Stage) -> str:
    """Ana sees how far it is: one claim is confirmed, one is not, one is looked at still."""
    asked = await stage.slack.acts.mention(QUESTION)

    def halfway() -> bool:
        tasks = [task for one in stage.ours() if one.stream for task in one.stream.tasks.values()]
        states = [str(task["status"]) for task in tasks]
        return "pending" in states and "complete" in states

    await stage.slack.until(halfway, PATIENCE)
    return _thread(stage, asked)


async def asking_alone(stage: Stage) -> str:
    """Ana asks by command: she alone sees the answer, and may share it."""
    await stage.slack.acts.command("/ask", PARKING)
    shown = [stage.shown(one) for one in await stage.answered()]
    return channel(stage.channel, [Done("Ana types", f"/ask {PARKING}"), *shown], stage.names)


async def fact_check(stage: Stage) -> str:
    """Ana has a message of Ben's checked: she alone sees what is found, in the channel, as nobody replied to it."""
    written = await stage.slack.acts.say(STATEMENTS, user="U2")
    await stage.slack.acts.shortcut("footnote_check", written)
    chosen = Done("Ana chooses from the message's menu", "Fact-check this message")
    found = [stage.shown(one) for one in await stage.answered()]
    return channel(stage.channel, [stage.shown(stage.slack.acts.find(written)), chosen, *found], stage.names)


async def settings(stage: Stage) -> str:
    """An admin looks at the channel's settings, and changes one."""
    shown = list[Shown | Done]()
    for text in ("", "ephemeral on"):
        before = len(stage.ours())
        await stage.slack.acts.command("/footnote", text, user=ADMIN)
        await stage.answered(pages=before + 1)
        shown += [Done("An admin types", f"/footnote {text}"), *map(stage.shown, stage.ours()[before:])]
    return channel(stage.channel, shown, stage.names)


async def _asked(stage: Stage, text: str) -> str:
    asked = await stage.slack.acts.mention(text)
    await stage.answered()
    return _thread(stage, asked)


def _thread(stage: Stage, root: str) -> str:
    replies = [stage.shown(one) for one in stage.ours() if one.thread == root]
    if not replies:
        raise LookupError("no answer stands in the thread")
    return thread(stage.channel, stage.shown(stage.slack.acts.find(root)), replies, stage.names)


_on = partial(played_on, staged, page)
SCENES = (
    Scene("slack-answer", _on(answer), OrderedModel),
    Scene("slack-checking", _on(checking), partial(OrderedModel, (SUPPORTED, UNKNOWN)), minute=6),
    Scene("slack-evidence", _on(evidence), OrderedModel, minute=14),
    Scene("slack-nothing-found", _on(abstaining), minute=21),
    Scene("slack-ask", _on(asking_alone), minute=30),
    Scene("slack-fact-check", _on(fact_check), minute=38),
    Scene("slack-sources-disagree", _on(disagreeing), minute=52),
    # What it sets holds in all that is played after it.
    Scene("slack-settings", _on(settings), minute=44),
)
