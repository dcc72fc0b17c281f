"""Ask questions through the strict fake servers of Slack and Discord, and read the replies as users see them.

`ServedHome` is a home in which `footnote serve` runs as a process of its own, connected to such a server.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.app import App
from bot.desk.supervisor import Clock
from tests.platforms.discord import running as discord_running
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import state as discord_state
from tests.platforms.discord.server import FakeDiscord
from tests.platforms.slack import running as slack_running
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import state as slack_state
from tests.platforms.slack.server import FakeSlack
from tests.platforms.workspace import Target

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class AskLoad:
    questions: int = 100
    channels: int = 20


@dataclass
class AskedQuestion:
    """A question that was asked on a platform."""

    name: str  # its id on the platform
    channel: str
    command: Any = None  # the platform's record of a command; None for a mention
    sign: float | None = None  # seconds until the first sign
    answered: float | None = None  # seconds until the answer


@dataclass
class SlackAsker:
    """The users of a Slack workspace, who ask questions."""

    fake: FakeSlack
    load: AskLoad

    def __post_init__(self) -> None:
        state = self.fake.state
        for number in range(self.load.questions):
            state.users[f"UA{number}"] = slack_state.User(f"UA{number}", f"asker{number}")
        for number in range(self.load.channels):
            members = {slack_state.BOT, *(name for name in state.users if name.startswith("UA"))}
            state.channels[f"CA{number}"] = slack_state.Channel(f"CA{number}", f"room{number}", members=members)

    def run_bot(self, app: App) -> AbstractAsyncContextManager[object]:
        target = Target(self.fake.url, self.fake.clock)
        bot: AbstractAsyncContextManager[object] = slack_running.run_bot(app, target, desk_clock=Clock())
        return bot

    async def ask(self, text: str, number: int, *, command: bool) -> AskedQuestion:
        user, channel = f"UA{number}", f"CA{number % self.load.channels}"
        if not command:
            return AskedQuestion(await self.fake.people.mention(text, user=user, channel=channel), channel)
        return AskedQuestion(user, channel, await self.fake.people.command("/ask", text, user=user, channel=channel))

    def signs(self) -> set[str]:
        shown = {thread for _, thread in self.fake.state.statuses}
        return shown | {message.only or message.root for message in self.fake.state.ours()}

    def answers(self, questions: Sequence[AskedQuestion]) -> dict[str, list[bool]]:
        """Return, by question, a flag for each message that replies to it: whether the message is a whole answer.

        Notes that an answer is coming are skipped.
        """
        answers: dict[str, list[bool]] = {question.name: [] for question in questions}
        for message in self.fake.state.ours():
            if (name := message.only or message.root) in answers and (message.blocks or not message.only):
                running = message.stream or "footnote:stop" in str(message.blocks)
                answers[name].append(bool(message.blocks) and not running)
        return answers

    def acknowledged(self, questions: Sequence[AskedQuestion]) -> list[float]:
        del questions
        events = [event for event in self.fake.courier.done if "bot_id" not in str(event.payload.get("event", ""))]
        return [event.took for event in events if event.took is not None]

    def faults(self) -> list[str]:
        limited = [f"limited: {call.name}" for call in self.fake.limited]
        return [*limited, *map(str, self.fake.refused), *("given up" for _ in self.fake.courier.lost)]

    def connect(self) -> dict[str, str]:
        """Return the environment variables with which a server joins this workspace."""
        tokens = {"SLACK_BOT_TOKEN": slack_state.BOT_TOKEN, "SLACK_APP_TOKEN": slack_state.APP_TOKEN}
        return {**tokens, "FOOTNOTE_SLACK__API_URL": self.fake.api}


@dataclass
class DiscordAsker:
    """The users of a Discord server, who ask questions."""

    fake: FakeDiscord
    load: AskLoad

    def __post_init__(self) -> None:
        state = self.fake.state
        for number in range(self.load.questions):
            name = f"{9_000 + number}"
            state.users[name] = discord_state.User(name, f"asker{number}")
            state.guilds[discord_state.GUILD].members[name] = discord_state.Member(name)
        for number in range(self.load.channels):
            name = f"{8_000 + number}"
            state.channels[name] = discord_state.Channel(name, f"room{number}", guild=discord_state.GUILD)

    def run_bot(self, app: App) -> AbstractAsyncContextManager[object]:
        target = Target(self.fake.url, self.fake.clock)
        bot: AbstractAsyncContextManager[object] = discord_running.run_bot(app, target, desk_clock=Clock())
        return bot

    async def ask(self, text: str, number: int, *, command: bool) -> AskedQuestion:
        user, channel = f"{9_000 + number}", f"{8_000 + number % self.load.channels}"
        if not command:
            return AskedQuestion(await self.fake.people.mention(text, user=user, channel=channel), channel)
        used = await self.fake.people.command("ask", user=user, channel=channel, question=text, private=number % 2 == 0)
        return AskedQuestion(used.id, channel, used)

    def signs(self) -> set[str]:
        typing = {channel for channel, user in self.fake.state.typing if user == discord_state.BOT}
        return typing | set(map(_find_question, self.fake.state.ours()))

    def answers(self, questions: Sequence[AskedQuestion]) -> dict[str, list[bool]]:
        answers: dict[str, list[bool]] = {question.name: [] for question in questions}
        for message in self.fake.state.ours():
            if (name := _find_question(message)) in answers:
                answers[name].append(bool(message.components) and "footnote:stop" not in str(message.components))
        return answers

    def acknowledged(self, questions: Sequence[AskedQuestion]) -> list[float]:
        at = {call.names["interaction"]: call.at for call in self.fake.calls("callback")}
        return [at[question.name] - question.command.at for question in questions if question.command]

    def faults(self) -> list[str]:
        return [*(f"limited: {call.name}" for call in self.fake.limited), *map(str, self.fake.refused)]

    def connect(self) -> dict[str, str]:
        """Return the environment variables with which a server joins this guild."""
        addresses = {"FOOTNOTE_DISCORD__API_URL": self.fake.api, "FOOTNOTE_DISCORD__GATEWAY_URL": self.fake.gateway.url}
        guild = {"FOOTNOTE_DISCORD__SERVERS": json.dumps([discord_state.GUILD])}
        token = {"DISCORD_TOKEN": discord_state.BOT_TOKEN, "FOOTNOTE_DISCORD__MESSAGE_CONTENT": "true"}
        return {**token, **guild, **addresses}


PlatformAsker = SlackAsker | DiscordAsker


def _find_question(message: Any) -> str:
    """Return the name of the question that a Discord message answers."""
    return message.interaction or str((message.reference or {}).get("message_id", ""))


@asynccontextmanager
async def serve_platform(name: str, load: AskLoad) -> AsyncIterator[PlatformAsker]:
    """Start a strict fake server of Slack or Discord, with the people and channels that a load needs."""
    if name == "slack":
        async with slack_server.serve() as slack:
            yield SlackAsker(slack, load)
    else:
        async with discord_server.serve() as discord:
            yield DiscordAsker(discord, load)


@dataclass
class ServedHome:
    """A folder with a settings file, and the process that serves it."""

    folder: Path
    variables: dict[str, str]
    program: Sequence[str] = ("-m", "bot")
    process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def run(self, *arguments: str) -> dict[str, Any]:
        """Run a command while the server runs, and return the JSON document that it prints."""
        command = [sys.executable, "-m", "bot", *arguments, "--json"]
        done = subprocess.run(command, **self._options(), capture_output=True, check=True)
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    @property
    def ready(self) -> bool:
        return "ready: " in (self.folder / "log").read_text()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, *self.program, "serve"]
            self.process = subprocess.Popen(command, **self._options(), stdout=log, stderr=log)

    def end(self, how: signal.Signals) -> None:
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def _options(self) -> dict[str, Any]:
        paths = {"PYTHONPATH": str(ROOT), "FOOTNOTE_HOME": ".footnote"}
        return {"cwd": self.folder, "env": {**os.environ, **paths, **self.variables}}
