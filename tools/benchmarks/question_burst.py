"""Measure how soon questions that are asked all at once are acknowledged, show a sign and are answered.

Slack and Discord are the tests' strict servers, which enforce the platforms' limits; the bot has its usual settings.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from bot.app import App
from bot.desk.supervisor import Clock
from bot.settings.tables.settings_tables import CorpusSettings, Settings
from bot.wiring import open_app
from evaluation.answers.question_sets import Exam, read_exam
from evaluation.speed.workload import median_or_nan, quantile, watch_event_loop
from evaluation.workbench import EXAMPLE_QUESTIONS, render_table
from ingest.refresh.corpus_refresh import refresh_corpus
from tests.platforms.discord import joining as discord_joining
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import world as discord_world
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.slack import joining as slack_joining
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import world as slack_world
from tests.platforms.slack.state import FakeSlack

LONGEST_SECONDS = 400.0  # so long it is waited for the last answer
_LOOK_SECONDS = 0.02
_ACK_MS, _SIGN_MS = 500.0, 3_000.0  # limits at the 99th percentile


@dataclass(frozen=True)
class Burst:
    questions: int = 100
    channels: int = 20


@dataclass
class Asked:
    """A question: what a platform knows of it, and when a person saw what, in seconds since it was asked."""

    name: str
    channel: str
    told: Any = None  # what platforms hand out for a command
    sign: float | None = None
    answered: float | None = None


class Side(Protocol):
    """A platform as this measures it."""

    def joined(self, app: App) -> AbstractAsyncContextManager[Any]: ...
    async def ask(self, text: str, number: int, *, command: bool) -> Asked: ...
    def signs(self) -> set[str]: ...
    def answers(self, asked: Sequence[Asked]) -> dict[str, list[bool]]: ...
    def acknowledged(self, asked: Sequence[Asked]) -> list[float]: ...
    def faults(self) -> list[str]: ...


@dataclass
class SlackSide:
    fake: FakeSlack
    load: Burst
    _users: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        world = self.fake.world
        for number in range(self.load.questions):
            world.users[f"UA{number}"] = slack_world.User(f"UA{number}", f"asker{number}")
        for number in range(self.load.channels):
            members = {slack_world.BOT, *(name for name in world.users if name.startswith("UA"))}
            world.channels[f"CA{number}"] = slack_world.Channel(f"CA{number}", f"room{number}", members=members)

    def joined(self, app: App) -> AbstractAsyncContextManager[Any]:
        found: AbstractAsyncContextManager[Any] = slack_joining.joined(app, self.fake, clock=Clock())
        return found

    async def ask(self, text: str, number: int, *, command: bool) -> Asked:
        user, channel = f"UA{number}", f"CA{number % self.load.channels}"
        if not command:
            return Asked(await self.fake.acts.mention(text, user=user, channel=channel), channel)
        self._users[user] = channel
        return Asked(user, channel, await self.fake.acts.command("/ask", text, user=user, channel=channel))

    def signs(self) -> set[str]:
        shown = {thread for _, thread in self.fake.world.statuses}
        return shown | {one.only or one.root for one in self.fake.world.ours()}

    def answers(self, asked: Sequence[Asked]) -> dict[str, list[bool]]:
        found: dict[str, list[bool]] = {one.name: [] for one in asked}
        for one in self.fake.world.ours():
            # What only says that an answer comes is none.
            if (name := one.only or one.root) in found and (one.blocks or not one.only):
                found[name].append(bool(one.blocks) and not one.stream and "footnote:stop" not in str(one.blocks))
        return found

    def acknowledged(self, asked: Sequence[Asked]) -> list[float]:
        del asked
        people = [one for one in self.fake.courier.done if "bot_id" not in str(one.payload.get("event", ""))]
        return [one.took for one in people if one.took is not None]

    def faults(self) -> list[str]:
        limited = [f"limited: {one.method}" for one in self.fake.limited]
        return [*limited, *map(str, self.fake.refused), *("given up" for _ in self.fake.courier.lost)]


@dataclass
class DiscordSide:
    fake: FakeDiscord
    load: Burst

    def __post_init__(self) -> None:
        world = self.fake.world
        for number in range(self.load.questions):
            name = f"{9_000 + number}"
            world.users[name] = discord_world.User(name, f"asker{number}")
            world.guilds[discord_world.GUILD].members[name] = discord_world.Member(name)
        for number in range(self.load.channels):
            name = f"{8_000 + number}"
            world.channels[name] = discord_world.Channel(name, f"room{number}", guild=discord_world.GUILD)

    def joined(self, app: App) -> AbstractAsyncContextManager[Any]:
        found: AbstractAsyncContextManager[Any] = discord_joining.joined(app, self.fake, clock=Clock())
        return found

    async def ask(self, text: str, number: int, *, command: bool) -> Asked:
        user, channel = f"{9_000 + number}", f"{8_000 + number % self.load.channels}"
        if not command:
            return Asked(await self.fake.acts.mention(text, user=user, channel=channel), channel)
        used = await self.fake.acts.command("ask", user=user, channel=channel, question=text, private=number % 2 == 0)
        return Asked(used.id, channel, used)

    def signs(self) -> set[str]:
        ours = self.fake.world.ours()
        typing = {channel for channel, user in self.fake.world.typing if user == discord_world.BOT}
        return typing | {one.interaction or str((one.reference or {}).get("message_id", "")) for one in ours}

    def answers(self, asked: Sequence[Asked]) -> dict[str, list[bool]]:
        found: dict[str, list[bool]] = {one.name: [] for one in asked}
        for one in self.fake.world.ours():
            name = one.interaction or str((one.reference or {}).get("message_id", ""))
            if name in found:
                found[name].append(bool(one.components) and "footnote:stop" not in str(one.components))
        return found

    def acknowledged(self, asked: Sequence[Asked]) -> list[float]:
        at = {one.names["interaction"]: one.at for one in self.fake.calls("callback")}
        return [at[one.name] - one.told.at for one in asked if one.told]

    def faults(self) -> list[str]:
        return [*(f"limited: {one.name}" for one in self.fake.limited), *map(str, self.fake.refused)]


async def measure_burst(side: Side, app: App, texts: Sequence[str], load: Burst, *, command: bool) -> dict[str, Any]:
    """Ask all at once, and watch until the last is answered.

    One question is answered before, so that what is loaded at the first is there.
    """
    async with side.joined(app), watch_event_loop() as lags:
        await _watch(side, [await side.ask(texts[-1], 0, command=False)], time.monotonic())
        lags.clear()
        asked = list[Asked]()
        started = time.monotonic()
        for number in range(load.questions):
            asked.append(await side.ask(texts[number % len(texts)], number, command=command))
        await _watch(side, asked, started)
        await asyncio.sleep(1.0)
        counted = side.answers(asked)
        acks = [1000 * one for one in side.acknowledged(asked)]
    signs = [1000 * (LONGEST_SECONDS if one.sign is None else one.sign) for one in asked]
    ends = [LONGEST_SECONDS if one.answered is None else one.answered for one in asked]
    return {
        "acknowledged_p50_ms": round(median_or_nan(acks)) if acks else None,
        "acknowledged_p99_ms": round(quantile(acks, 0.99)) if acks else None,
        "sign_p50_ms": round(median_or_nan(signs)),
        "sign_p99_ms": round(quantile(signs, 0.99)),
        "answered_p50_s": round(median_or_nan(ends), 1),
        "last_answer_s": round(max(ends), 1),
        "loop_lag_p99_ms": round(quantile(lags, 0.99)),
        "holds": {
            "each answered once": all(len(found) == 1 for found in counted.values()),
            f"acknowledged p99 below {_ACK_MS:g} ms": not acks or quantile(acks, 0.99) < _ACK_MS,
            f"first sign p99 below {_SIGN_MS:g} ms": quantile(signs, 0.99) < _SIGN_MS,
            "no limit exceeded, nothing refused": side.faults() == [],
        },
        "faults": sorted(set(side.faults())),
    }


async def _watch(side: Side, asked: Sequence[Asked], started: float) -> None:
    while any(one.answered is None for one in asked) and time.monotonic() < started + LONGEST_SECONDS:
        await asyncio.sleep(_LOOK_SECONDS)
        _look(side, asked, time.monotonic() - started)


def _look(side: Side, asked: Sequence[Asked], now: float) -> None:
    signs, answers = side.signs(), side.answers(asked)
    for one in asked:
        if one.sign is None and (one.name in signs or one.channel in signs):
            one.sign = now
        if one.answered is None and answers[one.name] and all(answers[one.name]):
            one.answered = now


async def run_burst(platform: str, load: Burst, *, command: bool) -> dict[str, Any]:
    """Open a home with the example documents and a bot at a fake server, and ask there."""
    exam = read_exam(EXAMPLE_QUESTIONS)
    texts = [posed.text for posed in exam.questions]
    with tempfile.TemporaryDirectory() as home:
        async with open_app(_settings(Path(home), exam)) as app:
            await refresh_corpus(exam.source, exam.corpus, app.passages, progress=lambda _: None)
            if platform == "slack":
                async with slack_server.serve() as slack:
                    return await measure_burst(SlackSide(slack, load), app, texts, load, command=command)
            async with discord_server.serve() as discord:
                return await measure_burst(DiscordSide(discord, load), app, texts, load, command=command)


def _settings(home: Path, exam: Exam) -> Settings:
    return Settings(home=home, system="extractive", corpus=(CorpusSettings(name=exam.corpus, visible_to=("*",)),))


def burst(
    questions: Annotated[int, typer.Option(min=1, help="How many are asked at once.")] = Burst.questions,
    channels: Annotated[int, typer.Option(min=1, help="In how many channels.")] = Burst.channels,
    platform: Annotated[str, typer.Option(help="slack or discord; empty for both.")] = "",
    by: Annotated[str, typer.Option(help="mention or command; empty for both.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Ask many questions at once on both platforms, by mentions and by commands, of the extractive system.

    Printed are how soon they are acknowledged (of mentions in Discord there is nothing to acknowledge), when a person
    sees a first sign, and when the last answer stands. The exit status is 1 if a limit does not hold.

    Example: python -m tools.benchmarks.question_burst --platform slack --by mention
    """
    load, rows = Burst(questions, channels), dict[str, dict[str, Any]]()
    for name in (platform,) if platform else ("slack", "discord"):
        for way in (by,) if by else ("mention", "command"):
            rows[f"{name} {way}"] = asyncio.run(run_burst(name, load, command=way == "command"))
    print(json.dumps({"schema": 1, "load": asdict(load), "bursts": rows}) if as_json else "\n".join(_lines(load, rows)))
    if not all(held for row in rows.values() for held in row["holds"].values()):
        raise typer.Exit(1)


def _lines(load: Burst, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield f"{load.questions} questions at once in {load.channels} channels"
    yield ""
    figures = [name for name in next(iter(rows.values())) if name not in {"holds", "faults"}]
    head = ["burst", *(name.replace("_", " ") for name in figures)]
    yield render_table(head, ([name, *(row[one] for one in figures)] for name, row in rows.items()))
    yield ""
    for name, row in rows.items():
        yield from (f"{name}: {what}: DOES NOT HOLD" for what, held in row["holds"].items() if not held)
        yield from (f"{name}: {fault}" for fault in row["faults"])


if __name__ == "__main__":
    typer.run(burst)
