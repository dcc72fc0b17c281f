"""Altered sentences of a few pages, and the command's report."""

import json
from pathlib import Path
from random import Random

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation import EvaluationError
from evaluation.answers.question_sets import TrueSentence, find_true_sentences
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import ClaimJudgement, JudgedClaim
from storage.types import Verdict
from tests.fakes import PageSource
from tools.alterations.alteration_check import (
    HARMLESS,
    TRUE,
    JudgedAlteration,
    alter_sentences,
    alterations,
    build_changers,
    choose_sentences,
    decide_acceptance,
    is_false_by_passage,
    is_usable,
    list_mistakes,
    render_alterations,
    report_alterations,
)
from tools.alterations.sentence_changes import Change, has_value
from tools.alterations.word_changes import NEIGHBOURS

PASSAGES = [
    (
        "On 3 May 1950, Ada Quill sold the old abbey near Ardmore for 3,200 crowns. "
        "She was older than Tom Reed was then. However, the roof wasn't sound, and 12 km of walls had fallen."
    ),
    (
        "The mill of Jo Lund burned in 1911 after a long and dry summer. It was not rebuilt by the town council. "
        "In March 1920 Jo Lund followed Bea Moss to Drum and stayed there for seven years."
    ),
]
SOURCE = PageSource({
    "abbey": {"": PASSAGES[0], "Unfinished": "no capital here at all and no stop"},
    "mill": {"": PASSAGES[1]},
    "broken": None,
})  # fmt: skip

APP = typer.Typer()
APP.command()(alterations)


def sentences() -> list[TrueSentence]:
    return [sentence for sentence in find_true_sentences(SOURCE) if is_usable(sentence)]


def test_true_sentences_occur_in_their_passages() -> None:
    assert [sentence.text.split()[0] for sentence in sentences()] == ["On", "She", "However,", "The", "It", "In"]
    assert all(sentence.text in sentence.passage for sentence in sentences())


@pytest.mark.parametrize(
    "text",
    [
        "Too short.",
        "it has no capital to open with.",
        "It has no full stop to end with",
        "It is\non two lines of a text.",
        "It goes on " + "and on " * 50 + "and ends.",
    ],
)
def test_incomplete_sentences_are_not_used(text: str) -> None:
    assert not is_usable(TrueSentence(text, text))


@given(st.integers(0, 2**32))
def test_altered_value_is_absent_from_the_passage(seed: int) -> None:
    for altered in alter_sentences(sentences(), Random(seed)):
        if altered.kind == TRUE:
            assert altered.change.text == altered.origin.text
        else:
            assert altered.change.text not in altered.origin.passage
            assert not any(has_value(value, altered.origin.passage) for value in altered.change.absent)
        assert altered.true == (altered.kind == TRUE or altered.kind in HARMLESS)


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_same_seed_gives_the_same_alterations(seed: int, count: int) -> None:
    chosen = choose_sentences(sentences(), count, Random(seed))

    assert chosen == choose_sentences(sentences(), count, Random(seed))
    assert len({*chosen}) == len(chosen) == count
    assert list(alter_sentences(chosen, Random(seed))) == list(alter_sentences(chosen, Random(seed)))


def test_every_kind_of_alteration_gets_sentences() -> None:
    altered = list(alter_sentences(sentences(), Random(3)))

    assert {sentence.kind for sentence in altered if not sentence.true} == {*build_changers([]), *NEIGHBOURS}
    assert [sentence.origin for sentence in altered if sentence.kind == TRUE] == sentences()


def test_value_in_the_passage_is_not_an_alteration() -> None:
    passage = "It closed in 1950. It opened in 1951."

    assert not is_false_by_passage(Change("It closed in 1951.", "1950", "1951", ("1951",)), passage)
    assert is_false_by_passage(Change("It closed in 1952.", "1950", "1952", ("1952",)), passage)
    assert not is_false_by_passage(Change("It opened in 1951.", "closed", "opened"), passage)


def test_lower_case_words_are_not_used_as_names() -> None:
    pool = [TrueSentence(text, text) for text in ("So Teachers met Ada.", "So teachers met Tom.")]
    swap_name = build_changers(pool)["name"]

    assert {change.new for seed in range(9) for change in swap_name("So Bea sang.", Random(seed))} == {"Ada", "Tom"}


def judge(verdicts: dict[str, Verdict]) -> list[JudgedAlteration]:
    altered = list(alter_sentences(sentences(), Random(3)))

    def judge_kind(kind: str) -> ClaimJudgement:
        return ClaimJudgement(0.5, verdicts.get(kind, Verdict.SUPPORTS), ("so",))

    claim = LabelledClaim("1", "s", "Geese fly.", (), Verdict.SUPPORTS, "g")
    return decide_acceptance(altered, [JudgedClaim(claim, judge_kind(sentence.kind), 1.0) for sentence in altered])


def test_altered_sentence_counts_as_caught_by_its_verdict() -> None:
    verdicts = dict.fromkeys([*build_changers([]), *NEIGHBOURS], Verdict.NOT_ENOUGH_INFO) | {"name": Verdict.SUPPORTS}
    judged = judge(verdicts)

    report, mistakes = report_alterations(judged), list_mistakes(judged, 2)

    assert report["caught"]["name"]["share"] == 0.0
    assert report["caught"]["month"]["share"] == 1.0
    assert report["kept"]["all of these"]["share"] == 1.0
    assert report["sentences"] == 6
    assert report["milliseconds"] == {"p50": 1.0, "p95": 1.0}
    assert list(mistakes) == ["name"]
    assert [mistake["reasons"] for mistake in mistakes["name"]] == [["so"], ["so"]]
    assert "| name |" in render_alterations(report)


def test_command_reads_a_folder(handbook: Path, tmp_path: Path) -> None:
    for place, passage in enumerate(PASSAGES):
        (tmp_path / f"{place}.txt").write_text(passage, encoding="utf-8")
    runner = CliRunner(env={"FOOTNOTE_HOME": str(handbook)})
    arguments = ["--dump", str(tmp_path), "--seed", "3", "--examples", "1"]

    first, second = (json.loads(runner.invoke(APP, [*arguments, "--json"]).stdout) for _ in range(2))
    printed = runner.invoke(APP, arguments).stdout

    assert first["kept"][TRUE]["share"] == 1.0
    assert {**first, "milliseconds": 0} == {**second, "milliseconds": 0}
    assert "6 true sentences" in printed
    assert "| number of the same passage |" in printed
    assert "mistakes for " in printed


def test_source_without_sentences_is_an_error(tmp_path: Path) -> None:
    empty = CliRunner().invoke(APP, ["--dump", str(tmp_path)])

    assert isinstance(empty.exception, EvaluationError)
    assert "no sentence" in str(empty.exception)
