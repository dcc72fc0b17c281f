"""`footnote chat`: its commands, its history, and failed turns."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from typer.testing import CliRunner

from bot.cli.command_context import CliState, measure_patience
from bot.cli.entry_point import app
from bot.cli.questions.chat_session import CHAT_HELP, ChatPorts, extend_history, run_chat
from bot.server.service import LocalService
from bot.settings.tables.settings_tables import Settings
from bot.types import MAX_EARLIER_TURNS, TurnResult
from pipeline.types import Answer, AnsweredSentence, Status, Turn
from storage.errors import HomeUnusable
from tests.bot.fake_services import FakeServices, abstained, answered, citation, refused


@dataclass
class Script:
    """Types the lines, and replies with or raises the replies, in order."""

    lines: list[str]
    replies: list[TurnResult | BaseException] = field(default_factory=list)
    heard: list[tuple[str, tuple[Turn, ...]]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)

    def ports(self) -> ChatPorts:
        lines = iter(self.lines)
        return ChatPorts(
            lambda: next(lines, None),
            self._ask,
            lambda question, done: self.shown.append(f"{question} {done.text}"),
            lambda done: self.shown.append(f"sources of {done.text}"),
            self.noted.append,
        )

    def _ask(self, question: str, history: tuple[Turn, ...]) -> TurnResult:
        self.heard.append((question, history))
        reply = self.replies.pop(0) if self.replies else answered()
        if isinstance(reply, BaseException):
            raise reply
        return reply


def test_question_includes_the_conversation() -> None:
    script = Script(["When does it open?\n", "And when does it close?\n"])
    run_chat(script.ports())

    assert script.heard[0] == ("When does it open?", ())
    assert script.heard[1][1] == (
        Turn("user", "When does it open?"),
        Turn("bot", "The quay opens at seven. [1]", titles=("Harbour",), documents=(("handbook", "harbour.md"),)),
    )


def test_empty_lines_ask_nothing_and_quit_ends() -> None:
    script = Script(["", "  ", "a", "/quit", "b"])

    assert len(run_chat(script.ports())) == 1
    assert [question for question, _ in script.heard] == ["a"]


def test_sources_command_shows_the_last_answer_s_sources() -> None:
    script = Script(["/sources", "a", "/sources", "b", "/sources"], [answered(), abstained()])
    run_chat(script.ports())

    assert script.shown == [
        "a The quay opens at seven. [1]",
        "sources of The quay opens at seven. [1]",
        "b I found nothing.",
    ]
    assert script.noted == ["The last answer has no sources."] * 2


def test_slash_new_starts_a_conversation_and_unknown_slash_commands_show_help() -> None:
    script = Script(["a", "/new", "b", "/help", "/nonsense"])
    run_chat(script.ports())

    assert script.heard[1] == ("b", ())
    assert script.noted == ["This is a new conversation.", CHAT_HELP, CHAT_HELP]


@pytest.mark.parametrize(("reply", "note"), [
    (KeyboardInterrupt(), "Stopped."),
    (refused(), "The question has no words — Ask in words."),
    (HomeUnusable("The disk is full.", hint="Free some space."), "The disk is full — Free some space."),
])  # fmt: skip
def test_chat_continues_after_a_failed_turn(reply: TurnResult | BaseException, note: str) -> None:
    script = Script(["a", "b"], [reply])

    assert len(run_chat(script.ports())) == 1
    assert script.noted == [note]
    assert script.heard[1] == ("b", ())


def test_unexpected_error_ends_the_chat() -> None:
    with pytest.raises(ZeroDivisionError):
        run_chat(Script(["a"], [ZeroDivisionError()]).ports())


def test_conversation_keeps_its_last_turns() -> None:
    history: tuple[Turn, ...] = ()
    for number in range(MAX_EARLIER_TURNS):
        history = extend_history(history, str(number), answered())

    assert len(history) == MAX_EARLIER_TURNS
    assert history[-2].text == str(MAX_EARLIER_TURNS - 1)


def test_cited_titles_are_sorted_by_frequency() -> None:
    sentences = tuple(AnsweredSentence("x", numbers) for numbers in ((1, 2), (2,), (3,)))
    cited = tuple(citation(number, title=f"Page {number}") for number in (1, 2, 3))
    done = answered(answer=Answer(Status.ANSWERED, sentences, cited))

    assert done.cited_titles == ("Page 2", "Page 1", "Page 3")


def test_home_is_open_only_while_answering() -> None:
    seen, services = list[str](), FakeServices().build()

    @asynccontextmanager
    async def open_home(settings: Settings) -> AsyncIterator[LocalService]:
        async with services.open_home(settings) as opened:
            seen.append("opened")
            yield opened
            seen.append("closed")

    CliRunner().invoke(app, ["chat"], obj=CliState(replace(services, open_home=open_home)), input="a\n/sources\nb\n")

    assert seen == ["opened", "closed"] * 2


@pytest.mark.parametrize(
    ("owner", "seconds"),
    [("footnote chat", 130), ("bot ask", 130), ("footnote serve", 10), ("", 10), ("footnote ingest", 0), ("python", 0)],
)
def test_waiting_time_depends_on_the_command_that_holds_the_home(owner: str, seconds: float) -> None:
    assert measure_patience(owner, Settings.model_validate({"limits": {"seconds": 120}})) == seconds
