"""Two systems side by side: whether the counting sees what differs, and that on real pages nothing does."""

from dataclasses import replace
from pathlib import Path

from evaluation.question_sets import ExamQuestion, read_exam
from evaluation.system_comparison import (
    ReplyPair,
    ScriptedConversation,
    SystemReply,
    choose_conversations,
    compare_systems,
    false_statements,
    render_comparison,
)
from evaluation.workbench import EXAMPLE_QUESTIONS
from storage.types import Verdict
from tests.handbook import copy_home

POSED = ExamQuestion("How long is the pier?", (("90 metres",),), frozenset(), "g")
KNOWN = ScriptedConversation(POSED, ("The pier is 90 metres long.",), ("The pier is 97 metres long.",))
SPOKEN = SystemReply("wikichat", "answered", frozenset(KNOWN.true), 1, {KNOWN.false[0]: Verdict.REFUTES}, 9)


def test_what_the_model_knows_is_true_and_then_false() -> None:
    """The sentence that answers, with another number beside it; of what nothing answers, something made up."""
    vain = replace(POSED, text="Who painted it?", answers=())
    found = choose_conversations([POSED, vain], ["It rains.", "The pier is 90 metres long."], 5)

    assert found[0] == KNOWN
    assert (found[1].posed, found[1].true) == (vain, ())


def test_what_only_one_of_them_says_is_listed() -> None:
    """With verdicts, ends and what was withheld; false statements by themselves."""
    other = SystemReply("wikichat-fast", "answered", frozenset(KNOWN.false), 2, {KNOWN.false[0]: Verdict.SUPPORTS}, 7)
    pair = ReplyPair(KNOWN, SPOKEN, other)

    assert [difference.split(":")[0] for difference in pair.differences] == [
        "only wikichat says",
        "only wikichat-fast says",
        "REFUTES and SUPPORTS",
        "wikichat withholds 1, wikichat-fast 2",
    ]
    assert false_statements(pair) == KNOWN.false
    assert "0 of 1 conversations are alike; 1 false statements said" in render_comparison([pair])
    assert ReplyPair(KNOWN, SPOKEN, SPOKEN).differences == ()


async def test_both_systems_say_the_same_and_leave_out_the_same(handbook: Path, tmp_path: Path) -> None:
    """Over the example handbook, with a model that lies where it may."""
    home = copy_home(handbook, tmp_path)
    pairs = await compare_systems(read_exam(EXAMPLE_QUESTIONS), 6, ("wikichat", "wikichat-fast"), home)

    assert len(pairs) == 6
    assert [one.differences for one in pairs if one.differences] == []
    assert [false_statements(one) for one in pairs if false_statements(one)] == []
    assert sum(one.one.withheld for one in pairs) > 2
    assert {one.one.status for one in pairs} >= {"answered"}
