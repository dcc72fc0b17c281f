"""Measure how soon questions that arrive at once are acknowledged, show a first sign of work, and are answered.

The bot has its default settings. It is connected to strict fake servers, which enforce the platforms' limits.
"""

import asyncio
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
from evaluation.reports.printing import AsJson, fail_unless, print_report, render_holds, render_table
from evaluation.speed.workload import describe_times, quantile, watch_event_loop
from evaluation.workbench import EXAMPLE_QUESTIONS, open_corpus
from tools.benchmarks.platform_askers import AskedQuestion, AskLoad, PlatformAsker, serve_platform

LONGEST_SECONDS = 400.0  # the longest wait for the last answer
_CHECK_SECONDS = 0.02
_ACK_MS = 500.0  # limit of the time to the acknowledgement, at the 99th percentile
_SIGN_MS = 3_000.0  # the same for the first sign


async def measure_burst(
    asker: PlatformAsker, app: App, texts: Sequence[str], load: AskLoad, *, command: bool
) -> dict[str, Any]:
    """Ask all questions at once, and wait for the last answer. One question before them warms the bot up."""
    async with asker.run_bot(app), watch_event_loop() as lags:
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
    none = dict.fromkeys(("acknowledged_p50_ms", "acknowledged_p99_ms"))
    return {
        **(describe_times("acknowledged", acks, "p50", "p99", digits=None) if acks else none),
        **describe_times("sign", signs, "p50", "p99", digits=None),
        **describe_times("answered", ends, "p50", unit="s"),
        "last_answer_s": round(max(ends), 1),
        **describe_times("loop_lag", lags, "p99", digits=None),
        "holds": {
            "each answered once": all(len(messages) == 1 for messages in answers.values()),
            f"acknowledged p99 below {_ACK_MS:g} ms": not acks or quantile(acks, 0.99) < _ACK_MS,
            f"first sign p99 below {_SIGN_MS:g} ms": quantile(signs, 0.99) < _SIGN_MS,
            "no limit exceeded, nothing refused": asker.faults() == [],
        },
        "faults": sorted(set(asker.faults())),
    }


async def _wait_for_answers(asker: PlatformAsker, questions: Sequence[AskedQuestion], started: float) -> None:
    """Wait until all questions are answered. Store when each gets its first sign of work, and its whole answer."""
    while any(question.answered is None for question in questions) and time.monotonic() < started + LONGEST_SECONDS:
        await asyncio.sleep(_CHECK_SECONDS)
        now, signs, answers = time.monotonic() - started, asker.signs(), asker.answers(questions)
        for question in questions:
            if question.sign is None and (question.name in signs or question.channel in signs):
                question.sign = now
            if question.answered is None and answers[question.name] and all(answers[question.name]):
                question.answered = now


async def run_burst(platform: str, load: AskLoad, *, command: bool) -> dict[str, Any]:
    """Open a home with the example documents, connect a bot to a fake server, and ask the questions there."""
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
    questions: Annotated[int, typer.Option(min=1, help="Number of questions asked at once.")] = AskLoad.questions,
    channels: Annotated[int, typer.Option(min=1, help="Number of channels.")] = AskLoad.channels,
    platform: Annotated[str, typer.Option(help="slack or discord; empty for both.")] = "",
    by: Annotated[str, typer.Option(help="How to ask: mention or command; empty for both.")] = "",
    as_json: AsJson = False,
) -> None:
    """Ask the extractive system many questions at once on both platforms, by mentions and by commands.

    Prints how soon they are acknowledged (Discord does not acknowledge mentions), when a person sees a first sign, and
    when the last answer is complete. The exit status is 1 if a limit does not hold.

    Example: python -m tools.benchmarks.question_burst --platform slack --by mention
    """
    load, rows = AskLoad(questions, channels), dict[str, dict[str, Any]]()
    for name in (platform,) if platform else ("slack", "discord"):
        for way in (by,) if by else ("mention", "command"):
            rows[f"{name} {way}"] = asyncio.run(run_burst(name, load, command=way == "command"))
    print_report({"load": asdict(load), "bursts": rows}, "\n".join(_render(load, rows)), as_json=as_json)
    fail_unless(holds for row in rows.values() for holds in row["holds"].values())


def _render(load: AskLoad, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield a table of the figures, then the limits that do not hold, and the calls that the fake servers refused."""
    yield f"{load.questions} questions at once in {load.channels} channels\n"
    figures = [name for name in next(iter(rows.values())) if name not in {"holds", "faults"}]
    head = ["burst", *(name.replace("_", " ") for name in figures)]
    yield render_table(head, ([name, *(row[figure] for figure in figures)] for name, row in rows.items())) + "\n"
    for name, row in rows.items():
        yield from (f"{name}: {line}" for line in render_holds(row["holds"]) if "NOT" in line)
        yield from (f"{name}: {fault}" for fault in row["faults"])


if __name__ == "__main__":
    typer.run(burst)
