"""Run several servers over one PostgreSQL and Chroma server, kill each in turn during questions, and count answers.

Each server is a process of `footnote serve`. This process runs a strict fake server of Slack or Discord.
"""

import asyncio
import json
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluation.answers.question_sets import read_exam
from evaluation.workbench import EXAMPLE_QUESTIONS
from storage.indexes.lexical import LexicalIndex
from tests.platforms.slack import state as slack_state
from tests.team_servers import TeamServers, find_missing, start_team_servers
from tools.benchmarks.platform_askers import (
    ROOT,
    AskedQuestion,
    AskLoad,
    PlatformAsker,
    ServedHome,
    SlackAsker,
    serve_platform,
)

DOWN_SECONDS = 8.0  # between the kill of a server and its restart
LONGEST_SECONDS = 400.0
FOLLOWED_SECONDS = 60.0  # within which all homes must hold the same
BEHIND = """SELECT count(*) FROM followers JOIN sequence ON followed < value
WHERE seen > now() - interval '1 minute'"""
NEW_PAGE = "# The harbour\n\nThe harbour of Skarholm was dredged in 1931. It is nine metres deep.\n"


@dataclass
class ServerTeam:
    """Several servers of `footnote`, and the database and pages that they share."""

    servers: TeamServers
    homes: list[ServedHome]
    pages: Path
    database: str

    def count(self, query: str) -> int:
        return int(self.servers.run_sql(query, self.database)[0][0])


@contextmanager
def start_team(folder: Path, platform: dict[str, str], size: int) -> Iterator[ServerTeam]:
    """Start the shared servers, ingest the pages into one home, and start all servers of the team."""
    with ExitStack() as stack:
        servers = stack.enter_context(start_team_servers())
        url = servers.find_database(folder)
        pages = Path(shutil.copytree(ROOT / "examples" / "handbook", folder / "pages"))
        nightly = f"{datetime.now(UTC) + timedelta(minutes=3):%H:%M}"
        shared = {"FOOTNOTE_DATABASE": url, "FOOTNOTE_CHROMA__URL": servers.chroma_url}
        variables = {**shared, "FOOTNOTE_SCHEDULE__NIGHTLY": nightly, **platform}
        homes = [ServedHome(folder / f"home{number}", variables) for number in range(size)]
        source = f'name = "handbook"\nvisible_to = ["*"]\nsource = {{ type = "folder", path = "{pages}" }}\n'
        for home in homes:
            home.folder.mkdir()
            (home.folder / "footnote.toml").write_text(f'system = "extractive"\n[[corpus]]\n{source}[http]\nport = 0\n')
        homes[0].run("ingest", "all")
        for home in homes:
            stack.callback(home.end, signal.SIGTERM)
            home.start()
        yield ServerTeam(servers, homes, pages, url.partition("?")[0].rpartition("/")[2])


async def ask_all(asker: PlatformAsker, team: ServerTeam, texts: list[str], load: AskLoad) -> list[AskedQuestion]:
    """Ask four questions per second; meanwhile, kill and restart one server after the other."""
    questions: list[AskedQuestion] = []
    share = load.questions // (len(team.homes) + 1)
    restarts: list[asyncio.Task[None]] = []
    for number in range(load.questions):
        questions.append(await asker.ask(texts[number % len(texts)], number, command=False))
        if number and number % share == 0 and len(restarts) < len(team.homes):
            home = team.homes[len(restarts)]
            await asyncio.to_thread(home.end, signal.SIGKILL)
            restarts.append(asyncio.create_task(_restart(home)))
        await asyncio.sleep(0.25)
    await asyncio.gather(*restarts)
    return questions


async def _restart(home: ServedHome) -> None:
    await asyncio.sleep(DOWN_SECONDS)
    home.start()


async def wait_until(holds: Callable[[], object], seconds: float = LONGEST_SECONDS) -> float:
    """Wait for a condition. Return the seconds until it held, or infinity if it did not in time."""
    started = time.monotonic()
    while not holds():
        if time.monotonic() > started + seconds:
            return float("inf")
        await asyncio.sleep(0.25)
    return time.monotonic() - started


async def press_and_edit(asker: PlatformAsker, questions: list[AskedQuestion]) -> dict[str, Any]:
    """On Slack, rate some answers and edit some questions. Count the acknowledgements and the new answers."""
    if not isinstance(asker, SlackAsker):
        return {}
    fake = asker.fake
    answers = {message.root: message for message in fake.state.ours() if message.blocks}
    rated = [question for question in questions if "footnote:feedback" in str(answers[question.name].blocks)][:20]
    presses = [
        await fake.people.press("footnote:feedback", answers[question.name].ts, user=f"UA{number}", chosen="positive")
        for number, question in enumerate(rated)
    ]
    await wait_until(lambda: all(press.answer.done() for press in presses), 5)  # Slack waits 3 s, then shows an error
    edited = questions[-10:]
    before = {question.name: answers[question.name].blocks for question in edited}
    for question in edited:
        await fake.people.edit(question.name, f"<@{slack_state.BOT}> How many days of parental leave are there?")

    def all_changed() -> bool:
        now = {message.root: message for message in fake.state.ours() if message.blocks}
        return all(now[question.name].blocks != before[question.name] for question in edited)

    took = await wait_until(all_changed, 60)
    counts = Counter(message.root for message in fake.state.ours() if message.blocks)
    return {
        "pressed": len(rated),
        "acknowledged in time": sum(press.took is not None for press in presses),
        "edits answered in, s": round(took, 1),
        "answers to the edited": sorted(counts[question.name] for question in edited),
    }


def read_places(home: ServedHome) -> set[tuple[int, int]]:
    """Return the places of all passages in the lexical index of a home, whose server must have ended."""
    with closing(LexicalIndex(home.folder / ".footnote" / "lexical")) as index:
        return {(number, position) for number, position in index.places()}


async def measure_team(name: str, load: AskLoad, size: int, folder: Path) -> dict[str, Any]:
    texts = [question.text for question in read_exam(EXAMPLE_QUESTIONS).questions]
    async with serve_platform(name, load) as asker:
        with start_team(folder, asker.connect(), size) as team:
            await wait_until(lambda: all(home.ready for home in team.homes), 120)
            began = time.monotonic()
            questions = await ask_all(asker, team, texts, load)
            late = await wait_until(lambda: all(all(some) and some for some in asker.answers(questions).values()))
            whole = time.monotonic() - began
            answers = Counter(len(messages) for messages in asker.answers(questions).values())
            actions = await press_and_edit(asker, questions)
            night = await wait_until(lambda: team.count("SELECT count(*) FROM nights WHERE ended IS NOT NULL"), 240)
            (team.pages / "harbour.md").write_text(NEW_PAGE)
            await asyncio.to_thread(team.homes[-1].run, "ingest", "all")
            followed = await wait_until(lambda: not team.count(BEHIND), 2 * FOLLOWED_SECONDS)
            for home in team.homes:
                await asyncio.to_thread(home.end, signal.SIGTERM)
            places = [read_places(home) for home in team.homes]
            return {
                "questions": load.questions,
                "answers to each": dict(answers),
                "last answer after the last question, s": round(late, 1),
                "whole, s": round(whole),
                **actions,
                "questions in the queue not done": team.count("SELECT count(*) FROM questions WHERE state <> 'done'"),
                "feedback recorded": team.count("SELECT count(*) FROM entries WHERE kind = 'feedback'"),
                "nightly refreshes": team.count("SELECT count(*) FROM nights"),
                "their runs": team.count("SELECT count(*) FROM runs WHERE night IS NOT NULL"),
                "nightly refresh ended": night < LONGEST_SECONDS,
                "all followed an ingest within, s": round(followed, 1),
                "passages in each lexical index": [len(passages) for passages in places],
                "indexes equal": all(passages == places[0] for passages in places),
                "faults": sorted(set(asker.faults()))[:10],
            }


def main(
    questions: Annotated[int, typer.Option(min=8)] = 300,
    size: Annotated[int, typer.Option(min=2, max=10, help="How many servers.")] = 3,
    platform: Annotated[str, typer.Option(help="slack or discord")] = "slack",
    keep: Annotated[bool, typer.Option(help="Do not delete the homes and their logs.")] = False,
) -> None:
    """Ask many questions of several servers, kill each in turn, and count answers, nightly refreshes and passages.

    Example: python -m tools.benchmarks.server_team --questions 300
    """
    if missing := find_missing():
        raise typer.BadParameter(missing)
    folder = Path(tempfile.mkdtemp(prefix="team-of-servers-"))
    try:
        print(json.dumps(asyncio.run(measure_team(platform, AskLoad(questions), size, folder)), indent=2))
    finally:
        if keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    typer.run(main)
