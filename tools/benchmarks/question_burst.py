"""Measure how soon questions that arrive all at once are acknowledged, get a first sign and are answered.

The bot has its default settings. It talks to the tests' strict servers, which enforce the platforms' limits.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.app import App
from bot.settings.tables.settings_tables import CorpusSettings
from evaluation.answers.question_sets import read_exam
from evaluation.speed.workload import median_or_nan, quantile, render_holds, watch_event_loop
from evaluation.workbench import EXAMPLE_QUESTIONS, open_corpus, render_table
from tools.benchmarks.platform_askers import AskedQuestion, AskLoad, PlatformAsker, serve_platform

LONGEST_SECONDS = 400.0  # the longest wait for the last answer
_CHECK_SECONDS = 0.02
_ACK_MS, _SIGN_MS = 500.0, 3_000.0  # limits at the 99th percentile


async def measure_burst(
    asker: PlatformAsker, app: App, texts: Sequence[str], load: AskLoad, *, command: bool
) -> dict[str, Any]:
    """Ask all questions at once and wait for the last answer; one question before them warms the bot up."""
    async with asker.joined(app), watch_event_loop() as lags:
        await _wait_for_answers(asker, [await asker.ask(texts[-1], 0, command=False)], time.monotonic())
        lags.clear()
        questions = list[AskedQuestion]()
        started = time.monotonic()
        for number in range(load.questions):
            questions.append(await asker.ask(texts[number % len(texts)], number, command=command))
        await _wait_for_answers(asker, questions, started)
        await asyncio.sleep(1.0)  # a second answer to a question would come now
        answers = asker.answers(questions)
        acks = [1000 * seconds for seconds in asker.acknowledged(questions)]
    signs = [1000 * (LONGEST_SECONDS if question.sign is None else question.sign) for question in questions]
    ends = [LONGEST_SECONDS if question.answered is None else question.answered for question in questions]
    return {
        "acknowledged_p50_ms": round(median_or_nan(acks)) if acks else None,
        "acknowledged_p99_ms": round(quantile(acks, 0.99)) if acks else None,
        "sign_p50_ms": round(median_or_nan(signs)),
        "sign_p99_ms": round(quantile(signs, 0.99)),
        "answered_p50_s": round(median_or_nan(ends), 1),
        "last_answer_s": round(max(ends), 1),
        "loop_lag_p99_ms": round(quantile(lags, 0.99)),
        "holds": {
            "each answered once": all(len(messages) == 1 for messages in answers.values()),
            f"acknowledged p99 below {_ACK_MS:g} ms": not acks or quantile(acks, 0.99) < _ACK_MS,
            f"first sign p99 below {_SIGN_MS:g} ms": quantile(signs, 0.99) < _SIGN_MS,
            "no limit exceeded, nothing refused": asker.faults() == [],
        },
        "faults": sorted(set(asker.faults())),
    }


async def _wait_for_answers(asker: PlatformAsker, questions: Sequence[AskedQuestion], started: float) -> None:
    """Note when each question gets its first sign and its whole answer, until all have one."""
    while any(question.answered is None for question in questions) and time.monotonic() < started + LONGEST_SECONDS:
        await asyncio.sleep(_CHECK_SECONDS)
        now, signs, answers = time.monotonic() - started, asker.signs(), asker.answers(questions)
        for question in questions:
            if question.sign is None and (question.name in signs or question.channel in signs):
                question.sign = now
            if question.answered is None and answers[question.name] and all(answers[question.name]):
                question.answered = now


async def run_burst(platform: str, load: AskLoad, *, command: bool) -> dict[str, Any]:
    """Open a home with the example documents and a bot at a fake server, and ask there."""
    exam = read_exam(EXAMPLE_QUESTIONS)
    corpus = CorpusSettings(name=exam.corpus, visible_to=("*",))
    with tempfile.TemporaryDirectory() as home:
        async with (
            open_corpus(exam.source, exam.corpus, Path(home), system="extractive", corpus=(corpus,)) as app,
            serve_platform(platform, load) as asker,
        ):
            texts = [question.text for question in exam.questions]
            return await measure_burst(asker, app, texts, load, command=command)


def burst(
    questions: Annotated[int, typer.Option(min=1, help="How many are asked at once.")] = AskLoad.questions,
    channels: Annotated[int, typer.Option(min=1, help="In how many channels.")] = AskLoad.channels,
    platform: Annotated[str, typer.Option(help="slack or discord; empty for both.")] = "",
    by: Annotated[str, typer.Option(help="mention or command; empty for both.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Ask many questions at once on both platforms, by mentions and by commands, of the extractive system.

    Prints how soon they are acknowledged (Discord does not acknowledge mentions), when a person sees a first sign, and
    when the last answer is complete. The exit status is 1 if a limit does not hold.

    Example: python -m tools.benchmarks.question_burst --platform slack --by mention
    """
    load, rows = AskLoad(questions, channels), dict[str, dict[str, Any]]()
    for name in (platform,) if platform else ("slack", "discord"):
        for way in (by,) if by else ("mention", "command"):
            rows[f"{name} {way}"] = asyncio.run(run_burst(name, load, command=way == "command"))
    print(json.dumps({"schema": 1, "load": asdict(load), "bursts": rows}) if as_json else "\n".join(_lines(load, rows)))
    if not all(holds for row in rows.values() for holds in row["holds"].values()):
        raise typer.Exit(1)


def _lines(load: AskLoad, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield f"{load.questions} questions at once in {load.channels} channels\n"
    figures = [name for name in next(iter(rows.values())) if name not in {"holds", "faults"}]
    head = ["burst", *(name.replace("_", " ") for name in figures)]
    yield render_table(head, ([name, *(row[figure] for figure in figures)] for name, row in rows.items())) + "\n"
    yield from list_faults(rows)


def list_faults(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the limits that do not hold, and what the fake servers refused."""
    for name, row in rows.items():
        yield from (f"{name}: {line}" for line in render_holds(row["holds"]) if "NOT" in line)
        yield from (f"{name}: {fault}" for fault in row["faults"])


if __name__ == "__main__":
    typer.run(burst)
