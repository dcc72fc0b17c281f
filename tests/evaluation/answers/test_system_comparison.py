"""Two systems side by side: whether the counting sees what differs, and that on real pages nothing does."""

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
from storage.types import Verdict
from tests.handbook import copy_home

POSED = ExamQuestion("How long is the pier?", (("90 metres",),), frozenset(), "g")
KNOWN = ScriptedConversation(POSED, ("The pier is 90 metres long.",), ("The pier is 97 metres long.",))
SPOKEN = SystemReply("wikichat", "answered", frozenset(KNOWN.true), 1, {KNOWN.false[0]: Verdict.REFUTES}, 9)


def test_falsified_statement_differs_in_one_number() -> None:
    vain = replace(POSED, text="Who painted it?", answers=())
    found = choose_conversations([POSED, vain], ["It rains.", "The pier is 90 metres long."], 5)

    assert found[0] == KNOWN
    assert (found[1].posed, found[1].true) == (vain, ())


def test_differences_between_systems_are_listed() -> None:
    other = SystemReply("wikichat-fast", "answered", frozenset(KNOWN.false), 2, {KNOWN.false[0]: Verdict.SUPPORTS}, 7)
    told = ComparedReplies(KNOWN, (SPOKEN, other), UncheckedReply(" ".join(KNOWN.false), 9, 9))

    assert [difference.split(":")[0] for difference in told.differences] == [
        "only wikichat says",
        "only wikichat-fast says",
        "REFUTES and SUPPORTS",
        "wikichat withholds 1, wikichat-fast 2",
    ]
    assert told.lies == KNOWN.false
    table = render_comparison([told])
    assert "| wikichat | 1 | 0 | 1 | 1 | 0 | 1 | 9.0 |" in table
    assert "| model alone, unchecked | 1 | 0 |  | 0 | 1 | 0 | 1.0 |" in table
    assert "0 of 1 conversations are alike; 1 false statements said" in table
    assert ComparedReplies(KNOWN, (SPOKEN, SPOKEN)).differences == ()


async def test_no_system_says_false_statements_and_the_model_alone_says_all(handbook: Path, tmp_path: Path) -> None:
    home = copy_home(handbook, tmp_path)
    names = ("wikichat", "wikichat-fast", *({*SYSTEMS} - {"wikichat", "wikichat-fast"}))
    told = await compare_systems(read_exam(EXAMPLE_QUESTIONS), 4, names, home, alone=True)

    assert [replace(one, replies=one.replies[:2]).differences for one in told] == [()] * 4
    assert [one.lies for one in told] == [()] * 4
    assert {reply.system for one in told for reply in one.replies if reply.status == "answered"} == {*SYSTEMS}
    assert sum(one.replies[0].withheld for one in told) > 2
    assert all(text in one.alone.unchecked for one in told if one.alone for text in one.known.false)


def test_model_alone_is_not_a_registered_system(tmp_path: Path) -> None:
    (tmp_path / "footnote.toml").write_text(f'home = "{tmp_path}"\nsystem = "model-alone"\n', encoding="utf-8")
    told = [
        CliRunner().invoke(app, ["--config", str(tmp_path / "footnote.toml"), "ask", *named, "Who?"])
        for named in ([], ["--system", NAME])
    ]

    assert not {"model-alone", "model_alone", NAME} & {*SYSTEMS}
    assert [one.exit_code for one in told] == [1, 1]
    assert all("There is no system “model" in one.output for one in told)
    unchecked, said = ({field.name for field in fields(kind)} for kind in (UncheckedReply, Answer))
    assert not unchecked & said
