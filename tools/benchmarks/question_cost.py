"""Measure what a question costs `footnote serve`: processor time, database statements, platform calls, seconds.

The server runs in its own process, with a home of many passages. This process runs a strict fake server of Slack or
Discord. A simulated model, if requested, runs in a third process.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

import typer
from sqlalchemy import Engine, event

from evaluation.answers.question_sets import read_exam
from evaluation.reports.printing import AsJson, fail_unless, print_report, render_holds, render_table
from evaluation.simulated_model.model_pace import SimulatedModel
from evaluation.simulated_model.paced_model import run_model_server
from evaluation.speed.refresh_benchmark import station_name
from evaluation.speed.workload import describe_times, generate_texts
from evaluation.workbench import EXAMPLE_QUESTIONS, PageSource, open_home, refresh_quietly
from ingest.sources.folder import FolderSource
from ingest.types import Block, Page, Section
from storage.types import DenseMode
from tools.benchmarks.platform_askers import (
    ROOT,
    AskedQuestion,
    AskLoad,
    PlatformAsker,
    ServedHome,
    serve_platform,
)

EXTRACTIVE_MS = 60.0  # limit of processor time a question
MODEL_MS = 120.0  # the same with a model, without the model's own time
CORPUS, HANDBOOK = "encyclopedia", ROOT / "examples" / "handbook"
WARMING = 12  # questions before those that are counted, so that everything is loaded
PEOPLE = 20
ASKED_OF_PAGES = (
    "When was {} founded?",
    "What is {} known for?",
    "Who lives in {} today?",
    "Why did {} change its name?",
    "How large is {}?",
    "Which river is near {}?",
)
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CostPlan:
    questions: int = 100
    passages: int = 100_000
    dense: str = "eager"
    handbook: float = 0.5  # the share of questions that the example handbook answers
    every: float = 0.5  # seconds between two questions at least
    model: bool = False
    system: str = ""

    @property
    def most_ms(self) -> float:
        return MODEL_MS if self.model else EXTRACTIVE_MS


@dataclass
class ServerWork:
    """What a server has done since it started."""

    processor: float = 0.0  # seconds
    statements: Counter[str] = field(default_factory=Counter)
    transactions: int = 0


def pose_questions(plan: CostPlan, count: int) -> list[str]:
    """Return distinct questions. Some are answered by the example handbook; each other one is about one page."""
    random = Random(plan.questions)
    exam = [question.text for question in read_exam(EXAMPLE_QUESTIONS).questions]
    of_handbook = random.sample(exam, min(len(exam), round(count * plan.handbook)))
    pages = random.sample(range(plan.passages), count - len(of_handbook))
    of_pages = [random.choice(ASKED_OF_PAGES).format(station_name(page)) for page in pages]
    return random.sample(of_handbook + of_pages, count)


def prepare_home(folder: Path, plan: CostPlan) -> None:
    """Write the settings of a home, and fill it if it is empty. Delete the questions of earlier runs."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = f'source = {{ type = "folder", path = "{HANDBOOK}" }}\n'
    corpora = f'[[corpus]]\nname = "{CORPUS}"\nvisible_to = ["*"]\ndense = "{plan.dense}"\n'
    corpora += f'[[corpus]]\nname = "handbook"\nvisible_to = ["*"]\n{pages}'
    (folder / "footnote.toml").write_text(f'{corpora}[http]\nport = 0\n[schedule]\nnightly = ""\n')
    home, marker = folder / ".footnote", folder / ".footnote" / "filled"
    if not marker.exists():
        print(f"filling {folder}: some minutes", file=sys.stderr)
        asyncio.run(_fill_home(home, plan))
        marker.write_text(str(plan.passages))
    with closing(sqlite3.connect(home / "footnote.db")) as database, database:
        # The fake platform starts empty, so the bot would retract the answers of an earlier run as deleted.
        database.executescript("delete from posts; delete from questions;")


def _generate_pages(count: int) -> Iterator[tuple[str, str, Page]]:
    """Yield pages of one passage each, made of random words."""
    texts = generate_texts(Random(1), 100)
    for number in range(count):
        yield f"1-{number}", f"{number}", Page(station_name(number), (Section((), (Block(next(texts)),)),))


async def _fill_home(home: Path, plan: CostPlan) -> None:
    async with open_home(home) as app:
        source = PageSource(plan.passages, partial(_generate_pages, plan.passages))
        await refresh_quietly(source, CORPUS, app, DenseMode(plan.dense))
        await refresh_quietly(FolderSource(HANDBOOK), "handbook", app)


async def read_work(home: ServedHome) -> ServerWork:
    """Return what the server has done so far, by its own counts and the system's processor times."""
    assert home.process is not None  # noqa: S101 - it was started
    counts = home.folder / "counts.json"
    counts.unlink(missing_ok=True)
    home.process.send_signal(signal.SIGUSR2)
    while not counts.exists():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)
    document = json.loads(counts.read_text())
    return ServerWork(_processor_seconds(home.process.pid), Counter(document["statements"]), document["transactions"])


def _processor_seconds(process: int) -> float:
    """Return the processor seconds of a process and of all its children, whether these still run or have ended."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    below = sum(_processor_seconds(int(child)) for file in children for child in file.read_text().split())
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
    return below + sum(map(int, ticks)) / _TICKS


def serve_counted(arguments: Sequence[str]) -> None:
    """Run `footnote`. On each SIGUSR2, write the number of each database statement to counts.json."""
    from bot.__main__ import main as run

    statements, transactions, counts = Counter[str](), Counter[str](), Path("counts.json")

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements[" ".join(statement.split())] += 1

    def begin(_connection: Any) -> None:
        transactions["all"] += 1

    def write(*_: Any) -> None:
        (part := counts.with_suffix(".part")).write_text(
            json.dumps({"statements": statements, "transactions": transactions["all"]})
        )
        part.rename(counts)

    event.listen(Engine, "before_cursor_execute", count)
    event.listen(Engine, "begin", begin)
    signal.signal(signal.SIGUSR2, write)
    sys.argv = ["footnote", *arguments]
    run()


async def ask_one_by_one(asker: PlatformAsker, texts: Sequence[str], plan: CostPlan) -> list[AskedQuestion]:
    """Ask each question after the one before is answered, and at least `plan.every` seconds after it."""
    questions = list[AskedQuestion]()
    for number, text in enumerate(texts):
        began = time.monotonic()
        question = await asker.ask(text, number % PEOPLE, command=False)
        await asker.fake.until(partial(_is_answered, asker, question), seconds=120)
        question.answered = time.monotonic() - began
        questions.append(question)
        await asyncio.sleep(max(0.0, plan.every - question.answered))
    return questions


def _is_answered(asker: PlatformAsker, question: AskedQuestion, *_: Any) -> bool:
    messages = asker.answers([question])[question.name]
    return bool(messages) and all(messages)


async def measure_cost(name: str, plan: CostPlan, folder: Path) -> dict[str, Any]:
    """Serve the home on a platform, ask, and return what a question costs."""
    texts = pose_questions(plan, plan.questions + WARMING)
    with run_model_server(SimulatedModel()) if plan.model else nullcontext("") as model:
        async with serve_platform(name, AskLoad(PEOPLE, PEOPLE)) as asker:
            variables = asker.connect()
            variables |= {"OPENAI_BASE_URL": model, "OPENAI_MODEL": "simulated"} if model else {}
            variables |= {"FOOTNOTE_SYSTEM": plan.system} if plan.system else {}
            (folder / "log").unlink(missing_ok=True)
            home = ServedHome(folder, variables, ("-m", "tools.benchmarks.question_cost", "--served"))
            home.start()
            try:
                return await _measure_served(home, asker, texts, plan)
            finally:
                home.end(signal.SIGTERM)


async def _measure_served(
    home: ServedHome, asker: PlatformAsker, texts: Sequence[str], plan: CostPlan
) -> dict[str, Any]:
    while not home.ready:
        if home.process and home.process.poll() is not None:
            raise SystemExit((home.folder / "log").read_text())
        await asyncio.sleep(0.1)
    await asyncio.sleep(4)  # Discord's gateway connects a little later
    await ask_one_by_one(asker, texts[:WARMING], plan)
    await asyncio.sleep(2)
    before, called = await read_work(home), len(asker.fake.received)
    questions = await ask_one_by_one(asker, texts[WARMING:], plan)
    await asyncio.sleep(2)  # work after the answer also counts
    after = await read_work(home)
    calls = Counter(getattr(call, "method", "") or call.name for call in asker.fake.received[called:])
    quiet = await read_work(home)
    await asyncio.sleep(5)
    idle = (await read_work(home)).processor - quiet.processor
    times = [1000 * (question.answered or 0.0) for question in questions]
    processor = 1000 * (after.processor - before.processor) / plan.questions
    statements = after.statements - before.statements
    return {
        "processor_ms": round(processor, 1),
        **describe_times("answered", times, "p50", "p95", digits=None),
        "statements": round(statements.total() / plan.questions, 1),
        "transactions": round((after.transactions - before.transactions) / plan.questions, 1),
        "calls": round(calls.total() / plan.questions, 2),
        "calls_by_method": {what: round(number / plan.questions, 2) for what, number in calls.most_common()},
        "statements_by_text": {what: round(number / plan.questions, 2) for what, number in statements.most_common(40)},
        "holds": {
            f"at most {plan.most_ms:g} ms of processor a question": processor <= plan.most_ms,
            "each answered once": all(len(messages) == 1 for messages in asker.answers(questions).values()),
            "no limit exceeded, nothing refused": asker.faults() == [],
        },
        "faults": sorted(set(asker.faults()))[:10],
        "idle_ms_a_second": round(200 * idle, 1),
    }


def cost(
    questions: Annotated[int, typer.Option(min=10, help="Number of questions that count.")] = CostPlan.questions,
    platform: Annotated[Literal["slack", "discord"] | None, typer.Option(help="The platform; default: both.")] = None,
    passages: Annotated[int, typer.Option(min=200, help="Number of passages in the home.")] = CostPlan.passages,
    dense: Annotated[str, typer.Option(help="eager, lazy or off: how the pages are embedded.")] = CostPlan.dense,
    handbook: Annotated[
        float, typer.Option(min=0, max=0.6, help="Share of questions that the handbook answers.")
    ] = CostPlan.handbook,
    every: Annotated[float, typer.Option(min=0, help="Seconds between two questions at least.")] = CostPlan.every,
    model: Annotated[bool, typer.Option(help="Configure a simulated model.")] = False,
    system: Annotated[str, typer.Option(help="Which system answers; empty: the default.")] = "",
    home: Annotated[Path | None, typer.Option(help="A folder for the home, kept; filled if it is empty.")] = None,
    texts: Annotated[bool, typer.Option(help="Also print the database statements.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the cost of a question to the server, from its mention to its answer, once everything is loaded.

    Processor time counts the server's process and its children. Unlike seconds, it hardly depends on other load of the
    machine. The exit status is 1 if a limit does not hold.

    Example: python -m tools.benchmarks.question_cost --home /tmp/home --platform slack
    """
    rows = dict[str, dict[str, Any]]()
    before = os.getloadavg()[0]
    with ExitStack() as stack:
        folder = home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="question-cost-")))
        marker = folder / ".footnote" / "filled"
        filled = int(marker.read_text()) if marker.exists() else passages
        plan = CostPlan(questions, filled, dense, handbook, every, model, system)
        for name in (platform,) if platform else ("slack", "discord"):
            prepare_home(folder, plan)
            rows[name] = asyncio.run(measure_cost(name, plan, folder))
    load = [round(before, 1), round(os.getloadavg()[0], 1)]
    report = {"plan": asdict(plan), "load_of_machine": load, "platforms": rows}
    print_report(report, "\n".join(_render(report, statements=texts)), as_json=as_json)
    fail_unless(holds for row in rows.values() for holds in row["holds"].values())


def _render(report: dict[str, Any], *, statements: bool) -> Iterator[str]:
    plan, rows = report["plan"], report["platforms"]
    model = f"a simulated model, {plan['system'] or 'the default system'}" if plan["model"] else "no model"
    yield f"{plan['questions']} questions, one after the other, {plan['passages']:,} passages {plan['dense']}, {model}"
    yield "load of this machine: {} before, {} after\n".format(*report["load_of_machine"])
    figures = [name for name, value in next(iter(rows.values())).items() if not isinstance(value, dict | list)]
    head = ["a question", *(name.replace("_", " ") for name in figures)]
    yield render_table(head, ([name, *(row[figure] for figure in figures)] for name, row in rows.items())) + "\n"
    for name, row in rows.items():
        yield f"{name}: {', '.join(f'{what} {number:g}' for what, number in row['calls_by_method'].items())}"
        for text, number in row["statements_by_text"].items() if statements else ():
            yield f"  {number:6.2f}  {text[:160]}"
        yield from (f"{name}: {line}" for line in (*render_holds(row["holds"]), *row["faults"]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--served"]:
        serve_counted(sys.argv[2:])
    else:
        typer.run(cost)
