"""True and altered statements put to the check."""

import json
from pathlib import Path

import pytest

from evaluation import EvaluationError
from storage.types import Verdict
from tools.statement_check import CheckedStatement, Statement, build_document, read_statements, statements


def test_statements_are_checked_over_their_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Documents are read in, and each statement gets a verdict; what is true is supported, what is altered is not."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "mill.md").write_text("# Lauvik mill\n\nIngrid Solberg founded the paper mill in Lauvik in 1921.\n")
    file = tmp_path / "statements.json"
    told = [
        {"claim": "Ingrid Solberg founded the mill in Lauvik in 1921.", "true": True},
        {"claim": "Ingrid Solberg founded the mill in Lauvik in 1931.", "true": False, "altered": "date"},
    ]
    file.write_text(json.dumps({"corpus": "mill", "folder": str(pages), "statements": told}))

    statements(file, home=tmp_path / "home", as_json=True)

    found = json.loads(capsys.readouterr().out)
    assert found["true"] == {"SUPPORTS": 1, "REFUTES": 0, "NOT ENOUGH INFO": 0}
    assert found["altered"] == {"SUPPORTS": 0, "REFUTES": 1, "NOT ENOUGH INFO": 0}


def test_counts_are_by_kind_and_verdict() -> None:
    """A true statement that is not supported, and an altered one that is, are both seen."""
    found = [
        CheckedStatement(Statement("a", true=True), Verdict.NOT_ENOUGH_INFO, "", 0.1),
        CheckedStatement(Statement("b", true=False, altered="name"), Verdict.SUPPORTS, "", 0.1),
    ]

    assert build_document(found)["true"]["NOT ENOUGH INFO"] == build_document(found)["altered"]["SUPPORTS"] == 1


@pytest.mark.parametrize("text", ["", "[]", '{"statements": []}', '{"statements": [{"claim": "a"}]}'])
def test_files_of_another_form_are_refused(tmp_path: Path, text: str) -> None:
    """The error shows the form that is wanted."""
    file = tmp_path / "statements.json"
    file.write_text(text)

    with pytest.raises(EvaluationError, match="cannot be read as statements"):
        read_statements(file)
