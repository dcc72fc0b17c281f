"""Count what a question costs `footnote serve`: processor, statements, calls of the platform, seconds to its answer.

The server is a process of its own with a home of many passages; Slack or Discord is the tests' strict server in this
one, and a model, where one is asked for, is simulated in a third.
"""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

import typer
from sqlalchemy import Engine, event

from evaluation.answers.question_sets import read_exam
from evaluation.simulated_model.model_pace import SimulatedModel
from evaluation.simulated_model.model_server import run_model_server
from evaluation.speed.workload import median_or_nan, quantile
from evaluation.workbench import EXAMPLE_QUESTIONS, render_table
from tests.platforms.discord import server as discord_server
from tests.platforms.slack import server as slack_server
from tools.benchmarks.question_burst import Asked, Burst, DiscordSide, SlackSide
from tools.benchmarks.server_team import ROOT, Home, connect_platform
from tools.benchmarks.synthetic_dump import make_title, write_dump

EXTRACTIVE_MS, MODEL_MS = 60.0, 120.0  # of processor a question at most, besides the model
CORPUS, PASSAGES_A_MEGABYTE = "encyclopedia", 955
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
_COUNTS = "QUESTION_COST_COUNTS"
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
class Counted:
    """What the server has done so far."""

    processor: float = 0.0
    statements: Counter[str] = field(default_factory=Counter)
    transactions: int = 0


def pose_questions(plan: CostPlan, number: int) -> list[str]:
    """Return different questions: of the example handbook, and of pages of the dump that nobody asked of before."""
    random = Random(plan.questions)
    exam = [posed.text for posed in read_exam(EXAMPLE_QUESTIONS).questions]
    pages = random.sample(range(0, plan.passages // 10, 2), number)
    of_pages = [ASKED_OF_PAGES[page // 2 % len(ASKED_OF_PAGES)].format(make_title(page)) for page in pages]
    of_handbook = random.sample(exam, min(len(exam), round(number * plan.handbook)))
    posed = of_handbook + of_pages[: number - len(of_handbook)]
    random.shuffle(posed)
    return posed


@contextmanager
def prepared_home(folder: Path, plan: CostPlan, source: Path) -> Iterator[Path]:
    """Give a folder with a home in it, filled unless it was before."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = f'source = {{ type = "folder", path = "{ROOT / "examples" / "handbook"}" }}\n'
    corpora = f'[[corpus]]\nname = "{CORPUS}"\nvisible_to = ["*"]\ndense = "{plan.dense}"\n'
    corpora += f'[[corpus]]\nname = "handbook"\nvisible_to = ["*"]\n{pages}'
    (folder / "footnote.toml").write_text(f'{corpora}[http]\nport = 0\n[schedule]\nnightly = ""\n')
    if not (folder / ".footnote" / "filled").exists():
        home, dump = Home(folder, {"FOOTNOTE_HOME": ".footnote"}), folder / "made.xml"
        print(f"filling {folder}: some minutes", file=sys.stderr)
        write_dump(source, dump, max(1, round(plan.passages / PASSAGES_A_MEGABYTE)))
        home.run("ingest", "wikipedia", "--dump", str(dump), "--corpus", CORPUS)
        home.run("ingest", "all")
        dump.unlink()
        (folder / ".footnote" / "filled").write_text(str(plan.passages))
    with closing(sqlite3.connect(folder / ".footnote" / "footnote.db")) as database, database:
        # A platform without the questions of an earlier run is taken to have deleted them: each would be taken back.
        database.executescript("delete from posts; delete from questions;")
    yield folder


class ServedHome(Home):
    """A home whose server counts its statements, and tells when it is asked by a signal."""

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--served", *arguments]

    async def count(self) -> Counted:
        """Return what the server has done so far, by its own account and the system's."""
        assert self.process is not None  # noqa: S101 - it was started
        told = self.folder / "counts.json"
        told.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR2)
        while not told.exists():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)
        found = json.loads(told.read_text())
        return Counted(_processor_seconds(self.process.pid), Counter(found["statements"]), found["transactions"])


def _processor_seconds(process: int) -> float:
    """Return the processor time of a process and all that it started, alive or not."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    below = sum(_processor_seconds(int(child)) for file in children for child in file.read_text().split())
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
    return below + sum(map(int, ticks)) / _TICKS


def serve_counted(arguments: Sequence[str]) -> None:
    """Be `footnote`, and write what was asked of the database to a file whenever a signal asks for it."""
    from bot.__main__ import main as run

    statements, transactions, told = Counter[str](), Counter[str](), Path("counts.json")

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements[" ".join(statement.split())] += 1

    def begin(_connection: Any) -> None:
        transactions["all"] += 1

    def tell(*_: Any) -> None:
        whole = {"statements": statements, "transactions": transactions["all"]}
        (part := told.with_suffix(".part")).write_text(json.dumps(whole))
        part.rename(told)

    event.listen(Engine, "before_cursor_execute", count)
    event.listen(Engine, "begin", begin)
    signal.signal(signal.SIGUSR2, tell)
    sys.argv = ["footnote", *arguments]
    run()


async def ask_one_by_one(side: Any, texts: Sequence[str], plan: CostPlan) -> list[Asked]:
    """Ask each once the one before is answered, at an even pace where that is quicker; note how long each took."""
    done = list[Asked]()
    for number, text in enumerate(texts):
        began = time.monotonic()
        asked: Asked = await side.ask(text, number % PEOPLE, command=False)
        await side.fake.until(partial(_stands, side, asked), seconds=120)
        asked.answered = time.monotonic() - began
        done.append(asked)
        await asyncio.sleep(max(0.0, plan.every - asked.answered))
    return done


def _stands(side: Any, asked: Asked, *_: Any) -> bool:
    found = side.answers([asked])[asked.name]
    return bool(found) and all(found)


async def measure_cost(name: str, plan: CostPlan, folder: Path) -> dict[str, Any]:
    """Serve the home at a platform, ask, and return what a question cost."""
    serving: Any = slack_server.serve() if name == "slack" else discord_server.serve()
    texts = pose_questions(plan, plan.questions + WARMING)
    with run_model_server(SimulatedModel()) if plan.model else nullcontext("") as model:
        async with serving as fake:
            side: Any = (SlackSide if name == "slack" else DiscordSide)(fake, Burst(PEOPLE, PEOPLE))
            home = ServedHome(folder, {"FOOTNOTE_HOME": ".footnote"} | connect_platform(name, fake))
            home.variables |= {"OPENAI_BASE_URL": model, "OPENAI_MODEL": "simulated"} if model else {}
            home.variables |= {"FOOTNOTE_SYSTEM": plan.system} if plan.system else {}
            (folder / "log").unlink(missing_ok=True)
            home.start()
            try:
                while "ready: " not in (log := (folder / "log").read_text()):
                    if home.process and home.process.poll() is not None:
                        raise SystemExit(log)
                    await asyncio.sleep(0.1)
                await asyncio.sleep(4)  # Discord's gateway is ready a little later: before, it hands nothing out
                await ask_one_by_one(side, texts[:WARMING], plan)
                await asyncio.sleep(2)
                before, called = await home.count(), len(fake.received)
                asked = await ask_one_by_one(side, texts[WARMING:], plan)
                await asyncio.sleep(2)  # what is done once an answer stands is the question's, too
                after = await home.count()
                calls = Counter(getattr(one, "method", "") or one.name for one in fake.received[called:])
                quiet = await home.count()
                await asyncio.sleep(5)
                idle = (await home.count()).processor - quiet.processor
            finally:
                home.end(signal.SIGTERM)
            return _figures(plan, side, asked, before, after, calls) | {"idle_ms_a_second": round(200 * idle, 1)}


def _figures(
    plan: CostPlan, side: Any, asked: Sequence[Asked], before: Counted, after: Counted, calls: Counter[str]
) -> dict[str, Any]:
    took = [1000 * (one.answered or 0.0) for one in asked]
    processor = 1000 * (after.processor - before.processor) / plan.questions
    statements = after.statements - before.statements
    return {
        "processor_ms": round(processor, 1),
        "answered_p50_ms": round(median_or_nan(took)),
        "answered_p95_ms": round(quantile(took, 0.95)),
        "statements": round(statements.total() / plan.questions, 1),
        "transactions": round((after.transactions - before.transactions) / plan.questions, 1),
        "calls": round(calls.total() / plan.questions, 2),
        "calls_by_method": {what: round(number / plan.questions, 2) for what, number in calls.most_common()},
        "statements_by_text": {what: round(number / plan.questions, 2) for what, number in statements.most_common(40)},
        "holds": {
            f"at most {plan.most_ms:g} ms of processor a question": processor <= plan.most_ms,
            "each answered once": all(len(found) == 1 for found in side.answers(asked).values()),
            "no limit exceeded, nothing refused": side.faults() == [],
        },
        "faults": sorted(set(side.faults()))[:10],
    }


def cost(
    questions: Annotated[int, typer.Option(min=10, help="How many are counted.")] = CostPlan.questions,
    platform: Annotated[Literal["slack", "discord"] | None, typer.Option(help="Both if none.")] = None,
    passages: Annotated[int, typer.Option(min=2_000, help="About how many the home holds.")] = CostPlan.passages,
    dense: Annotated[str, typer.Option(help="eager, lazy or off: how the pages are embedded.")] = CostPlan.dense,
    handbook: Annotated[float, typer.Option(min=0, max=0.6, help="Share of questions it answers.")] = CostPlan.handbook,
    every: Annotated[float, typer.Option(min=0, help="Seconds between two questions at least.")] = CostPlan.every,
    model: Annotated[bool, typer.Option(help="Configure a simulated model.")] = False,
    system: Annotated[str, typer.Option(help="Which system answers; empty: the default.")] = "",
    home: Annotated[Path | None, typer.Option(help="A folder for the home, kept; filled if it is not.")] = None,
    source: Annotated[Path | None, typer.Option(help="A real dump, to fill a home with pages made of it.")] = None,
    texts: Annotated[bool, typer.Option(help="Print the statements, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Count what a question costs the server, from its mention to its answer, once everything is loaded.

    Processor time is that of the server's process and those that it starts, and is little changed by other work on the
    machine; seconds are. The exit status is 1 if a limit does not hold.

    Example: python -m tools.benchmarks.question_cost --home /tmp/home --source enwiki.xml.bz2 --platform slack
    """
    plan = CostPlan(questions, passages, dense, handbook, every, model, system)
    folder = home or Path(tempfile.mkdtemp(prefix="question-cost-"))
    if not (folder / ".footnote" / "filled").exists() and source is None:
        raise typer.BadParameter("An empty home is filled from --source.")
    if source is not None and not source.is_file():
        raise typer.BadParameter(f"There is no {source}.")
    rows = dict[str, dict[str, Any]]()
    before = os.getloadavg()[0]
    with ExitStack() as stack:
        if home is None:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.enter_context(prepared_home(folder, plan, source or Path()))
        if kept := (folder / ".footnote" / "filled").read_text():
            plan = replace(plan, passages=int(kept))
        for name in (platform,) if platform else ("slack", "discord"):
            rows[name] = asyncio.run(measure_cost(name, plan, folder))
    load = [round(before, 1), round(os.getloadavg()[0], 1)]
    report = {"schema": 1, "plan": asdict(plan), "load_of_machine": load, "platforms": rows}
    print(json.dumps(report) if as_json else "\n".join(_lines(report, statements=texts)))
    if not all(held for row in rows.values() for held in row["holds"].values()):
        raise typer.Exit(1)


def _lines(report: dict[str, Any], *, statements: bool) -> Iterator[str]:
    plan, rows = report["plan"], report["platforms"]
    how = f"a simulated model, {plan['system'] or 'the default system'}" if plan["model"] else "no model"
    home = f"{plan['passages']:,} passages {plan['dense']}"
    yield f"{plan['questions']} questions, one after the other, {home}, {how}"
    yield "load of this machine: {} before, {} after".format(*report["load_of_machine"])
    yield ""
    figures = [name for name, value in next(iter(rows.values())).items() if not isinstance(value, dict | list)]
    head = ["a question", *(name.replace("_", " ") for name in figures)]
    yield render_table(head, ([name, *(row[one] for one in figures)] for name, row in rows.items()))
    yield ""
    for name, row in rows.items():
        yield f"{name}: {', '.join(f'{what} {number:g}' for what, number in row['calls_by_method'].items())}"
        for text, number in row["statements_by_text"].items() if statements else ():
            yield f"  {number:6.2f}  {text[:160]}"
    yield ""
    for name, row in rows.items():
        yield from (f"{name}: {what}: {'holds' if held else 'DOES NOT HOLD'}" for what, held in row["holds"].items())
        yield from (f"{name}: {fault}" for fault in row["faults"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--served"]:
        serve_counted(sys.argv[2:])
    else:
        typer.run(cost)
