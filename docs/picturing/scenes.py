"""What is shown: short scenes, each of which returns the body of a page. They play at the example company."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile

from docs.picturing.pages import Done, Shown, channel, modal, thread
from docs.picturing.staging import ADMIN, Stage
from examples.scripted_model import CLAIMS, QUESTION, SUPPORTED, UNKNOWN, ScriptedModel
from pipeline.model import LLM, ModelCall, ModelReply, Spent

MEALS = "What is the meal allowance on business trips?"
GYM = "Is there a gym in the Cobh office?"
PARKING = "How many parking places are there in Cobh?"
STATEMENTS = (
    "Hi all! No receipt is needed for amounts under 15 euros. Laptops are replaced every five years. "
    "The Bergen office has a sauna."
)


class Orderly(ScriptedModel):
    """The scripted model, which judges claims in one order, so that pictures stay the same; others it never judges."""

    def __init__(self, order: Sequence[str] = tuple(CLAIMS)) -> None:
        """Take the claims in their order."""
        self._judged = {claim: asyncio.Event() for claim in order}

    async def complete(self, call: ModelCall, spent: Spent) -> ModelReply:
        """Return what is written for the stage, when it is that claim's turn. Raises `HandbookChanged`."""
        if call.stage != "verify":
            return await super().complete(call, spent)
        claim = call.messages[-1].text.rpartition("Claim: ")[2]
        for before in takewhile(lambda one: one != claim, self._judged):
            await self._judged[before].wait()
        if claim not in self._judged:
            await asyncio.Event().wait()
        reply = await super().complete(call, spent)
        self._judged[claim].set()
        return reply


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and how it comes about."""

    name: str
    play: Callable[[Stage], Awaitable[str]]
    llm: Callable[[], LLM] | None = None
    minute: int = 2


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

    await stage.slack.until(halfway)
    return _thread(stage, asked)


async def asking_alone(stage: Stage) -> str:
    """Ana asks by command: she alone sees the answer, and may share it."""
    await stage.slack.acts.command("/ask", PARKING)
    shown = [stage.shown(one) for one in await stage.answered()]
    return channel(stage.channel, [Done("Ana types", f"/ask {PARKING}"), *shown], stage.names)


async def fact_check(stage: Stage) -> str:
    """Ana has a message of Ben's checked."""
    written = await stage.slack.acts.say(STATEMENTS, user="U2")
    await stage.slack.acts.shortcut("footnote_check", written)
    await stage.answered()
    return _thread(stage, written, Done("Ana chooses from the message's menu", "Fact-check this message"))


async def settings(stage: Stage) -> str:
    """An admin looks at the channel's settings, and changes one."""
    shown = list[Shown | Done]()
    for text in ("", "ephemeral on"):
        before = len(stage.ours())
        await stage.slack.acts.command("/footnote", text, user=ADMIN)
        await stage.answered(pages=before + 1)
        shown += [Done("An admin types", f"/footnote {text}"), *map(stage.shown, stage.ours()[before:])]
    return channel(stage.channel, shown, stage.names)


SCENES = (
    Scene("slack-answer", answer, Orderly),
    Scene("slack-checking", checking, partial(Orderly, (SUPPORTED, UNKNOWN)), minute=6),
    Scene("slack-evidence", evidence, Orderly, minute=14),
    Scene("slack-nothing-found", abstaining, minute=21),
    Scene("slack-ask", asking_alone, minute=30),
    Scene("slack-fact-check", fact_check, minute=38),
    Scene("slack-settings", settings, minute=44),
    Scene("slack-sources-disagree", disagreeing, minute=52),
)


def at(scene: Scene) -> datetime:
    """Return when it plays: each at another time, for a message's time is its name."""
    return datetime(2026, 3, 3, 10, scene.minute, tzinfo=UTC)


async def _asked(stage: Stage, text: str) -> str:
    asked = await stage.slack.acts.mention(text)
    await stage.answered()
    return _thread(stage, asked)


def _thread(stage: Stage, root: str, *done: Done) -> str:
    replies = [stage.shown(one) for one in stage.ours() if one.thread == root]
    return thread(stage.channel, stage.shown(stage.slack.acts.find(root)), [*done, *replies], stage.names)
