"""Altered sentences over pages of our own, and what the command says of them."""

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
    """Pages that cannot be read are passed by."""
    found = sentences()

    assert [sentence.text.split()[0] for sentence in found] == ["On", "She", "However,", "The", "It", "In"]
    assert all(sentence.text in sentence.passage for sentence in found)


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
    """Fragments, and what never ends."""
    assert not is_usable(TrueSentence(text, text))


@given(st.integers(0, 2**32))
def test_alterations_change_the_sentence_and_its_value(seed: int) -> None:
    """Nothing new stands in the passage, and what is harmless is no copy."""
    for each in alter_sentences(sentences(), Random(seed)):
        if each.kind == TRUE:
            assert each.change.text == each.origin.text
        else:
            assert each.change.text not in each.origin.passage
            assert not any(has_value(value, each.origin.passage) for value in each.change.absent)
        assert each.true == (each.kind == TRUE or each.kind in HARMLESS)


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_same_seed_gives_the_same_alterations(seed: int, count: int) -> None:
    """The same sentences and changes each time, as many as were asked for."""
    found = choose_sentences(sentences(), count, Random(seed))

    assert found == choose_sentences(sentences(), count, Random(seed))
    assert len({*found}) == len(found) == count
    assert list(alter_sentences(found, Random(seed))) == list(alter_sentences(found, Random(seed)))


def test_every_kind_gets_sentences() -> None:
    """All ten kinds of alteration, those of the same passage, and each sentence once as it stands."""
    found = list(alter_sentences(sentences(), Random(3)))

    assert {each.kind for each in found if not each.true} == {*build_changers([]), *NEIGHBOURS}
    assert [each.origin for each in found if each.kind == TRUE] == sentences()


def test_value_in_the_passage_is_not_an_alteration() -> None:
    """What stands elsewhere in the passage might be true."""
    passage = "It closed in 1950. It opened in 1951."

    assert not is_false_by_passage(Change("It closed in 1951.", "1950", "1951", ("1951",)), passage)
    assert is_false_by_passage(Change("It closed in 1952.", "1950", "1952", ("1952",)), passage)
    assert not is_false_by_passage(Change("It opened in 1951.", "closed", "opened"), passage)


def test_lower_case_words_are_not_used_as_names() -> None:
    """One sentence's "Teachers" is another's "teachers"."""
    pool = [TrueSentence(text, text) for text in ("So Teachers met Ada.", "So teachers met Tom.")]

    found = {change.new for seed in range(9) for change in build_changers(pool)["name"]("So Bea sang.", Random(seed))}

    assert found == {"Ada", "Tom"}


def outcomes(scores: dict[str, float], verdicts: dict[str, Verdict] | None = None):
    made = list(alter_sentences(sentences(), Random(3)))

    def judged(kind: str) -> ClaimJudgement:
        verdict = None if verdicts is None else verdicts.get(kind, Verdict.SUPPORTS)
        return ClaimJudgement(scores.get(kind, 0.5), verdict, ("so",))

    claim = LabelledClaim("1", "s", "Geese fly.", (), Verdict.SUPPORTS, "g")
    return made, [JudgedClaim(claim, judged(each.kind), 1.0) for each in made]


def test_threshold_loses_little() -> None:
    """Whatever scores below all true and harmless ones is caught."""
    tried = decide_acceptance(*outcomes({"year": 0.4, "number": 0.6}))

    found = report_alterations(tried)

    assert found["caught"]["year"]["share"] == 1.0
    assert found["caught"]["number"]["share"] == 0.0
    assert found["kept"]["all of these"]["share"] == 1.0
    assert found["sentences"] == 6
    assert found["milliseconds"] == {"p50": 1.0, "p95": 1.0}


def test_verdicts_decide_if_given() -> None:
    """Whatever the score; mistakes are told by kind, so many of each."""
    verdicts = dict.fromkeys([*build_changers([]), *NEIGHBOURS], Verdict.NOT_ENOUGH_INFO) | {"name": Verdict.SUPPORTS}
    tried = decide_acceptance(*outcomes({}, verdicts))

    found, wrong = report_alterations(tried), list_mistakes(tried, 2)

    assert found["caught"]["name"]["share"] == 0.0
    assert found["caught"]["month"]["share"] == 1.0
    assert list(wrong) == ["name"]
    assert len(wrong["name"]) == 2
    assert wrong["name"][0]["reasons"] == ["so"]
    assert "| name |" in render_alterations("x", found)


def written(tmp_path: Path) -> Path:
    for place, passage in enumerate(PASSAGES):
        (tmp_path / f"{place}.txt").write_text(passage, encoding="utf-8")
    return tmp_path


def test_command_reads_a_folder(handbook: Path, tmp_path: Path) -> None:
    """And prints one document, the same for a seed."""
    asked = ["--dump", str(written(tmp_path)), "--seed", "3", "--examples", "1", "--json"]

    runner = CliRunner(env={"FOOTNOTE_HOME": str(handbook)})
    first, second = (json.loads(runner.invoke(APP, asked).stdout) for _ in range(2))

    assert first["verifier"] == "local"
    assert first["kept"][TRUE]["share"] == 1.0
    assert {**first, "milliseconds": 0} == {**second, "milliseconds": 0}


def test_command_prints_a_table_and_mistakes(tmp_path: Path) -> None:
    """By kind."""
    asked = ["--dump", str(written(tmp_path)), "--verifier", "overlap", "--examples", "1"]

    printed = CliRunner().invoke(APP, asked).stdout

    assert "**overlap** over 6 true sentences" in printed
    assert "| number of the same passage |" in printed
    assert "mistakes for negation removed:" in printed


def test_source_without_sentences_is_an_error(tmp_path: Path) -> None:
    """With what to do; so is a verifier that does not exist."""
    empty = CliRunner().invoke(APP, ["--dump", str(tmp_path)])
    unknown = CliRunner().invoke(APP, ["--dump", str(tmp_path), "--verifier", "oracle"])

    assert isinstance(empty.exception, EvaluationError)
    assert "no sentence" in str(empty.exception)
    assert "No verifier is called" in str(unknown.exception)
