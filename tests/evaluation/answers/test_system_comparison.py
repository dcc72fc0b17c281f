"""The comparison of two systems: differences are counted, and on real pages there are none."""

from dataclasses import fields, replace
from pathlib import Path

from typer.testing import CliRunner

from bot.cli.entry_point import app
from evaluation.answers.model_alone import NAME, UncheckedReply
from evaluation.answers.question_sets import ExamQuestion, read_exam
from evaluation.answers.system_comparison import (
    ComparedReplies,
    ScriptedConversation,
    SystemReply,
    choose_conversations,
    compare_systems,
    render_comparison,
)
from evaluation.workbench import EXAMPLE_QUESTIONS
from pipeline.systems import SYSTEMS
from pipeline.types import Answer
from tests.handbook import copy_home

POSED = ExamQuestion("How long is the pier?", (("90 metres",),), frozenset(), "g")
KNOWN = ScriptedConversation(POSED, ("The pier is 90 metres long.",), ("The pier is 97 metres long.",))
SPOKEN = SystemReply("wikichat", "answered", frozenset(KNOWN.true), 1, 9)


def test_falsified_statement_differs_in_one_number() -> None:
    vain = replace(POSED, text="Who painted it?", answers=())
    chosen = choose_conversations([POSED, vain], ["It rains.", "The pier is 90 metres long."], 5)

    assert chosen[0] == KNOWN
    assert (chosen[1].posed, chosen[1].true) == (vain, ())


def test_false_statements_of_systems_are_counted() -> None:
    other = SystemReply("wikichat-fast", "answered", frozenset(KNOWN.false), 2, 7)
    compared = ComparedReplies(KNOWN, (SPOKEN, other), UncheckedReply(" ".join(KNOWN.false), 9, 9))

    assert compared.lies == KNOWN.false
    table = render_comparison([compared])
    assert "| wikichat | 1 | 0 | 1 | 1 | 0 | 1 | 9.0 |" in table
    assert "| model alone, unchecked | 1 | 0 |  | 0 | 1 | 0 | 1.0 |" in table
    assert table.endswith("\n1 false statements said")
    assert ComparedReplies(KNOWN, (SPOKEN, SPOKEN)).lies == ()


async def test_systems_withhold_all_false_statements_and_the_model_alone_says_them(
    handbook: Path, tmp_path: Path
) -> None:
    home = copy_home(handbook, tmp_path)
    names = ("wikichat", "wikichat-fast", *({*SYSTEMS} - {"wikichat", "wikichat-fast"}))
    compared = await compare_systems(read_exam(EXAMPLE_QUESTIONS), 4, names, home, alone=True)

    assert all(full.said == fast.said for full, fast, *_ in (conversation.replies for conversation in compared))
    assert [conversation.lies for conversation in compared] == [()] * 4
    assert {
        reply.system for conversation in compared for reply in conversation.replies if reply.status == "answered"
    } == {*SYSTEMS}
    assert sum(conversation.replies[0].withheld for conversation in compared) > 2
    assert all(
        text in conversation.alone.unchecked
        for conversation in compared
        if conversation.alone
        for text in conversation.known.false
    )


def test_model_alone_is_not_a_registered_system(tmp_path: Path) -> None:
    (tmp_path / "footnote.toml").write_text(f'home = "{tmp_path}"\nsystem = "model-alone"\n', encoding="utf-8")
    results = [
        CliRunner().invoke(app, ["--config", str(tmp_path / "footnote.toml"), "ask", *named, "Who?"])
        for named in ([], ["--system", NAME])
    ]

    assert not {"model-alone", "model_alone", NAME} & {*SYSTEMS}
    assert [result.exit_code for result in results] == [1, 1]
    assert all("There is no system “model" in result.output for result in results)
    unchecked, answer = ({field.name for field in fields(kind)} for kind in (UncheckedReply, Answer))
    assert not unchecked & answer
