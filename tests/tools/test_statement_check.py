"""Labelled statements put to the check."""

import json
from pathlib import Path

import pytest

from evaluation import EvaluationError
from storage.types import Verdict
from tests.handbook import copy_home
from tests.thorough import THOROUGH
from tools.statement_check import (
    CheckedStatement,
    Label,
    Statement,
    build_document,
    check_statements,
    read_statements,
    statements,
)

FACTS = Path(__file__).parents[2] / "tools" / "facts"


def test_statements_are_checked_over_their_documents(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Documents are read in, and each statement gets a verdict; what is true is supported, what is altered is not."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "mill.md").write_text("# Lauvik mill\n\nIngrid Solberg founded the paper mill in Lauvik in 1921.\n")
    file = tmp_path / "statements.json"
    told = [
        {"corpus": "mill", "claim": "Ingrid Solberg founded the mill in Lauvik in 1921.", "label": "true"},
        {"corpus": "mill", "claim": "Ingrid Solberg founded the mill in Lauvik in 1931.", "label": "altered"},
    ]
    file.write_text(json.dumps({"corpora": {"mill": {"folder": str(pages)}}, "statements": told}))

    statements(file, home=home, as_json=True)

    found = json.loads(capsys.readouterr().out)
    assert found["true"] == {"SUPPORTS": 1, "REFUTES": 0, "NOT ENOUGH INFO": 0}
    assert found["altered"] == {"SUPPORTS": 0, "REFUTES": 1, "NOT ENOUGH INFO": 0}


def test_counts_are_by_label_and_verdict() -> None:
    """A true statement that is not supported, and an altered one that is, are both seen."""
    found = [
        CheckedStatement(Statement("mill", "a", Label.TRUE), Verdict.NOT_ENOUGH_INFO, "", 0.1),
        CheckedStatement(Statement("mill", "b", Label.ALTERED, "name"), Verdict.SUPPORTS, "", 0.1),
    ]

    assert build_document(found)["true"]["NOT ENOUGH INFO"] == build_document(found)["altered"]["SUPPORTS"] == 1


@pytest.mark.parametrize("text", ["", "[]", '{"statements": []}', '{"corpora": {}, "statements": [{"claim": "a"}]}'])
def test_files_of_another_form_are_refused(tmp_path: Path, text: str) -> None:
    """The error shows the form that is wanted."""
    file = tmp_path / "statements.json"
    file.write_text(text)

    with pytest.raises(EvaluationError, match="cannot be read as statements"):
        read_statements(file)


@pytest.fixture(scope="module")
def home(handbook: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each corpus is indexed once."""
    return copy_home(handbook, tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize(("file", "corpus"), [("tuned", "shop"), ("tuned", "example"), ("held", "example")])
async def test_nothing_true_and_nothing_about_another_thing_is_refuted(home: Path, file: str, corpus: str) -> None:
    """A statement is refuted only by another value of the same attribute of the same subject."""
    sources, told = read_statements(FACTS / f"statements_{file}.json")
    own = [one for one in told if one.corpus == corpus][:: 1 if THOROUGH else 4]

    found = await check_statements({corpus: sources[corpus]}, own, home)

    refuted = [one.statement for one in found if one.verdict is Verdict.REFUTES]
    supported = [one.statement for one in found if one.verdict is Verdict.SUPPORTS]
    assert [one for one in refuted if one.label is not Label.ALTERED] == []
    assert sum(one.label is not Label.TRUE for one in supported) <= 1
    assert len(refuted) >= 0.4 * sum(one.label is Label.ALTERED for one in own)
