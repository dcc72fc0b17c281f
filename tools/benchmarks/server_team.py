"""Let several servers share a PostgreSQL and a Chroma server, kill each in turn under questions, and count what came.

The servers are processes of `footnote serve`; Slack or Discord is the tests' strict server in this one.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluation.answers.question_sets import read_exam
from evaluation.workbench import EXAMPLE_QUESTIONS
from storage.indexes.lexical import LexicalIndex
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import world as discord_world
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import world as slack_world
from tests.team_servers import TeamServers, find_missing, start_team_servers
from tools.benchmarks.question_burst import Asked, Burst, DiscordSide, SlackSide

ROOT = Path(__file__).parents[2]
CORPUS = "handbook"
DOWN_SECONDS = 8.0  # how long a server that was killed stays away
LONGEST_SECONDS = 400.0
FOLLOWED_SECONDS = 60.0  # within which all homes have to hold the same
BEHIND = """SELECT count(*) FROM followers JOIN sequence ON followed < value
WHERE seen > now() - interval '1 minute'"""
NEW_PAGE = "# The harbour\n\nThe harbour of Skarholm was dredged in 1931. It is nine metres deep.\n"


@dataclass
class Home:
    """One server's folder, and its process while it lives."""

    folder: Path
    variables: dict[str, str]
    process: "subprocess.Popen[bytes] | None" = None

    def run(self, *arguments: str) -> dict[str, Any]:
        """Run a command beside the server, and return its document."""
        done = subprocess.run(self._command(*arguments, "--json"), **self._options(), capture_output=True, check=True)
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    @property
    def ready(self) -> bool:
        return "ready: " in (self.folder / "log").read_text()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self._command("serve"), **self._options(), stdout=log, stderr=log)

    def end(self, how: signal.Signals) -> None:
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "bot", *arguments]

    def _options(self) -> dict[str, Any]:
        return {"cwd": self.folder, "env": {**os.environ, "PYTHONPATH": str(ROOT), **self.variables}}


@dataclass
class Team:
    """The servers, and where they keep what they share."""

    servers: TeamServers
    homes: list[Home]
    pages: Path
    database: str
    seconds: dict[str, float] = field(default_factory=dict)

    def count(self, query: str) -> int:
        return int(self.servers.run_sql(query, self.database)[0][0])


@contextmanager
def gathered(folder: Path, platform: dict[str, str], size: int) -> Iterator[Team]:
    """Start what is shared, read the pages in by one home, and start all servers."""
    with ExitStack() as stack:
        servers = stack.enter_context(start_team_servers())
        url = servers.find_database(folder)
        pages = Path(shutil.copytree(ROOT / "examples" / "handbook", folder / "pages"))
        due = datetime.now(UTC) + timedelta(minutes=3)
        homes = [Home(folder / f"home{number}", _variables(servers, url, due) | platform) for number in range(size)]
        for home in homes:
            home.folder.mkdir()
            source = f'name = "{CORPUS}"\nvisible_to = ["*"]\nsource = {{ type = "folder", path = "{pages}" }}\n'
            (home.folder / "footnote.toml").write_text(f'system = "extractive"\n[[corpus]]\n{source}[http]\nport = 0\n')
        team = Team(servers, homes, pages, url.partition("?")[0].rpartition("/")[2])
        homes[0].run("ingest", "all")
        for home in homes:
            stack.callback(home.end, signal.SIGTERM)
            home.start()
        yield team


def _variables(servers: TeamServers, url: str, due: datetime) -> dict[str, str]:
    shared = {"FOOTNOTE_DATABASE": url, "FOOTNOTE_CHROMA__URL": servers.chroma_url}
    return {**shared, "FOOTNOTE_SCHEDULE__NIGHTLY": f"{due:%H:%M}", "FOOTNOTE_HOME": ".footnote"}


async def ask_all(side: Any, team: Team, texts: list[str], load: Burst) -> list[Asked]:
    """Ask at an even pace, and kill one server after the other meanwhile; each comes back after a while."""
    asked: list[Asked] = []
    share = load.questions // (len(team.homes) + 1)
    returning: list[asyncio.Task[None]] = []
    for number in range(load.questions):
        asked.append(await side.ask(texts[number % len(texts)], number, command=False))
        if number and number % share == 0 and len(returning) < len(team.homes):
            home = team.homes[len(returning)]
            await asyncio.to_thread(home.end, signal.SIGKILL)
            returning.append(asyncio.create_task(_return(home)))
        await asyncio.sleep(0.25)
    await asyncio.gather(*returning)
    return asked


async def _return(home: Home) -> None:
    await asyncio.sleep(DOWN_SECONDS)
    home.start()


async def wait_until(holds: Any, seconds: float = LONGEST_SECONDS) -> float:
    """Return how long it took until something held; infinity where it never did."""
    started = time.monotonic()
    while not holds():
        if time.monotonic() > started + seconds:
            return float("inf")
        await asyncio.sleep(0.25)
    return time.monotonic() - started


async def press_and_edit(fake: Any, side: Any, asked: list[Asked]) -> dict[str, Any]:
    """Press a button of some answers, and change the words of some questions, in Slack."""
    if not isinstance(side, SlackSide):
        return {}
    answers = {one.root: one for one in fake.world.ours() if one.blocks}
    pressed = [one for one in asked if "footnote:feedback" in str(answers[one.name].blocks)][:20]
    given = [
        await fake.acts.press("footnote:feedback", answers[one.name].ts, user=f"UA{number}", chosen="positive")
        for number, one in enumerate(pressed)
    ]
    await wait_until(lambda: all(one.answer.done() for one in given), 5)  # Slack waits 3 s, and tells who pressed
    edited = asked[-10:]
    before = {one.name: answers[one.name].blocks for one in edited}
    for one in edited:
        await fake.acts.edit(one.name, f"<@{slack_world.BOT}> How many days of parental leave are there?")

    def changed() -> bool:
        now = {root.root: root for root in fake.world.ours() if root.blocks}
        return all(now[one.name].blocks != before[one.name] for one in edited)

    took = await wait_until(changed, 60)
    again = Counter(one.root for one in fake.world.ours() if one.blocks)
    return {
        "pressed": len(pressed),
        "acknowledged in time": sum(one.took is not None for one in given),
        "edits taken up in, s": round(took, 1),
        "answers to the edited": sorted(again[one.name] for one in edited),
    }


def read_places(home: Home) -> set[tuple[int, int]]:
    """Return what a home's index of words holds, once its server is gone."""
    with closing(LexicalIndex(home.folder / ".footnote" / "lexical")) as index:
        return {(number, position) for number, position in index.places()}


async def measure(name: str, load: Burst, size: int, folder: Path) -> dict[str, Any]:
    texts = [posed.text for posed in read_exam(EXAMPLE_QUESTIONS).questions]
    serving: Any = slack_server.serve() if name == "slack" else discord_server.serve()
    async with serving as fake:
        side: Any = SlackSide(fake, load) if name == "slack" else DiscordSide(fake, load)
        with gathered(folder, connect_platform(name, fake), size) as team:
            await wait_until(lambda: all(home.ready for home in team.homes), 120)
            began = time.monotonic()
            asked = await ask_all(side, team, texts, load)
            left = await wait_until(lambda: all(all(found) and found for found in side.answers(asked).values()))
            whole = time.monotonic() - began
            answers = Counter(len(found) for found in side.answers(asked).values())
            more = await press_and_edit(fake, side, asked)
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
                "last answer after the last question, s": round(left, 1),
                "whole, s": round(whole),
                **more,
                "questions on the queue not done": team.count("SELECT count(*) FROM questions WHERE state <> 'done'"),
                "feedback on record": team.count("SELECT count(*) FROM entries WHERE kind = 'feedback'"),
                "nights": team.count("SELECT count(*) FROM nights"),
                "runs of the night": team.count("SELECT count(*) FROM runs WHERE night IS NOT NULL"),
                "night over": night < LONGEST_SECONDS,
                "all followed an ingest within, s": round(followed, 1),
                "index of words, passages": [len(held) for held in places],
                "indexes equal": all(held == places[0] for held in places),
                "faults": sorted(set(side.faults()))[:10],
            }


def connect_platform(name: str, fake: Any) -> dict[str, str]:
    if name == "slack":
        tokens = {"SLACK_BOT_TOKEN": slack_world.BOT_TOKEN, "SLACK_APP_TOKEN": slack_world.APP_TOKEN}
        return {**tokens, "FOOTNOTE_SLACK__API_URL": fake.api}
    guild = json.dumps([discord_world.GUILD])
    addresses = {"FOOTNOTE_DISCORD__API_URL": fake.api, "FOOTNOTE_DISCORD__GATEWAY_URL": fake.gateway.url}
    more = {"FOOTNOTE_DISCORD__SERVERS": guild, "FOOTNOTE_DISCORD__MESSAGE_CONTENT": "true"}
    return {"DISCORD_TOKEN": discord_world.BOT_TOKEN, **more, **addresses}


def main(
    questions: Annotated[int, typer.Option(min=8)] = 300,
    size: Annotated[int, typer.Option(min=2, max=10, help="How many servers.")] = 3,
    platform: Annotated[str, typer.Option(help="slack or discord")] = "slack",
    keep: Annotated[bool, typer.Option(help="Leave the homes and their logs.")] = False,
) -> None:
    """Ask many questions of several servers, kill each in turn, and count answers, nights and what indexes hold.

    Example: python -m tools.benchmarks.server_team --questions 300
    """
    if missing := find_missing():
        raise typer.BadParameter(missing)
    folder = Path(tempfile.mkdtemp(prefix="team-of-servers-"))
    try:
        print(json.dumps(asyncio.run(measure(platform, Burst(questions), size, folder)), indent=2))
    finally:
        if keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    typer.run(main)
