"""Measure how soon Discord commands are deferred while many are in flight, at the tests' fake Discord."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.server.supervisor import Clock
from bot.settings.settings_tables import CorpusSettings, DeskSettings, LimitSettings, Settings
from bot.wiring import App, open_app
from evaluation.question_sets import Exam, read_exam
from evaluation.speed.workload import median_or_nan, quantile
from evaluation.workbench import EXAMPLE_QUESTIONS
from ingest.refresh.corpus_refresh import refresh_corpus
from pipeline.kit import Kit, System
from pipeline.systems import extractive
from pipeline.types import Conversation, Status
from tests.platforms.discord.joining import joined
from tests.platforms.discord.server import serve
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.discord.world import Interaction

PEOPLE, CHANNELS = ("101", "102", "103"), ("201", "202", "203")
ANSWERED_SECONDS = 300.0
"""So long it is waited for the last answer; retrieval and gate take most of it on a small machine."""


@dataclass(frozen=True)
class CommandLoad:
    """How much is asked, and how fast."""

    in_flight: int = 100
    """That many are asked in the same moment, and answered at once."""
    questions: int = 100
    """That many more are asked meanwhile, one by one."""
    seconds: float = 10.0
    """That the model takes for an answer."""
    pause: float = 0.05
    """Seconds between two of them."""


def discord(
    in_flight: Annotated[int, typer.Option(min=1, help="How many are answered at once.")] = CommandLoad.in_flight,
    questions: Annotated[int, typer.Option(min=1, help="How many more are asked meanwhile.")] = CommandLoad.questions,
    seconds: Annotated[float, typer.Option(min=0, help="That the model takes for an answer.")] = CommandLoad.seconds,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Ask many questions by Discord's commands, and time how soon each is deferred.

    The exit status is 1 if one is not deferred in time, or not answered exactly once.
    """
    report = asyncio.run(measure_deferral(read_exam(EXAMPLE_QUESTIONS), CommandLoad(in_flight, questions, seconds)))
    print(json.dumps(report) if as_json else _lines(report))
    if not all(report["holds"].values()):
        raise typer.Exit(1)


async def measure_deferral(exam: Exam, load: CommandLoad) -> dict[str, Any]:
    """Open a home with an exam's documents and a bot at a fake Discord, and ask its questions there."""
    with tempfile.TemporaryDirectory() as home:
        async with open_app(_settings(Path(home), exam, load)) as opened:
            await refresh_corpus(exam.source, exam.corpus, opened.passages, progress=lambda _: None)
            app = replace(opened, systems={"extractive": replace(extractive.ENTRY, answer=_delay_system(load.seconds))})
            return await _run_commands(app, [posed.text for posed in exam.questions], load)


async def _run_commands(app: App, texts: Sequence[str], load: CommandLoad) -> dict[str, Any]:
    async with serve() as fake, joined(app, fake, clock=Clock()):
        burst = [await _command(fake, texts, number) for number in range(load.in_flight)]
        await fake.until(lambda: all(one.acked for one in burst), seconds=60)
        single = list[Interaction]()
        for number in range(load.questions):
            single.append(await _command(fake, texts, number))
            await fake.until(lambda: bool(single[-1].acked), seconds=60)
            await asyncio.sleep(load.pause)
        every = [*burst, *single]
        await fake.until(lambda: all(_is_answered(fake, one) for one in every), seconds=ANSWERED_SECONDS + load.seconds)
        deferred = {one.names["interaction"]: one.at for one in fake.calls("callback")}
        waits, at_once = ([1000 * (deferred[one.id] - one.at) for one in many] for many in (single, burst))
        answers = [sum(message.interaction == one.id for message in fake.world.ours()) for one in every]
        return {
            "schema": 1,
            "load": asdict(load),
            "defer_p50_ms": round(median_or_nan(waits), 1),
            "defer_p99_ms": round(quantile(waits, 0.99), 1),
            "defer_max_ms": round(max(waits), 1),
            "burst_p50_ms": round(median_or_nan(at_once), 1),
            "burst_p99_ms": round(quantile(at_once, 0.99), 1),
            "burst_max_ms": round(max(at_once), 1),
            "holds": {
                "all deferred in time": max(*waits, *at_once) < 1000 * fake.ack_seconds,
                "each answered once": set(answers) == {1},
                "nothing refused": fake.refused == [],
            },
        }


async def _command(fake: FakeDiscord, texts: Sequence[str], number: int) -> Interaction:
    user, channel = PEOPLE[number % len(PEOPLE)], CHANNELS[number // len(PEOPLE) % len(CHANNELS)]
    used: Interaction = await fake.acts.command(
        "ask", user=user, channel=channel, question=texts[number % len(texts)], private=True
    )
    return used


def _is_answered(fake: FakeDiscord, used: Interaction) -> bool:
    """Return whether an answer stands there as it stays."""
    shown = [str(one.components) for one in fake.world.ours() if one.interaction == used.id and one.components]
    return bool(shown) and not any("footnote:stop" in one for one in shown)


def _delay_system(seconds: float) -> System:
    """Return a system that takes so long for an answer, and then quotes."""

    async def answer(talk: Conversation, kit: Kit) -> Status:
        await asyncio.sleep(seconds)
        return await extractive.answer(talk, kit)

    return answer


def _settings(home: Path, exam: Exam, load: CommandLoad) -> Settings:
    both = load.in_flight + load.questions
    return Settings(
        home=home,
        system="extractive",
        corpus=(CorpusSettings(name=exam.corpus, visible_to=("*",)),),
        desk=DeskSettings(at_once=both, per_channel=both, patience_seconds=3_600),
        limits=LimitSettings(seconds=3_600),
    )


def _lines(report: dict[str, Any]) -> str:
    load, holds = report["load"], report["holds"]
    figures = [name for name in report if name.endswith("_ms")]
    return "\n".join(
        [
            f"{load['in_flight']} commands in one moment, then {load['questions']} one by one beside them",
            "",
            *(f"{name.replace('_', ' ')}: {report[name]}" for name in figures),
            "",
            *(f"{name}: {'holds' if held else 'DOES NOT HOLD'}" for name, held in holds.items()),
        ]
    )


if __name__ == "__main__":
    typer.run(discord)
