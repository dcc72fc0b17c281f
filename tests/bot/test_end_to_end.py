"""The commands one after the other on the real house: the example handbook in, footnoted answers out."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from bot.cli import app

HANDBOOK = str(Path(__file__).parents[2] / "examples" / "handbook")


def told(*arguments: str, status: int = 0) -> dict[str, Any]:
    """Run a command and return its document."""
    result = CliRunner().invoke(app, [*arguments, "--json"], prog_name="footnote")
    assert result.exit_code == status, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_from_a_folder_to_an_answer_that_the_record_vouches_for() -> None:
    """Every command of the contract, on one home; what is quoted stands verbatim in the passage it cites."""
    told("init")
    first = told("ingest", "folder", HANDBOOK, "--corpus", "handbook", "--url-base", "https://tolliver.example")
    pages = first["documents"]["added"]
    assert pages >= 20
    assert first["documents"] == {"added": pages, "changed": 0, "unchanged": 0, "removed": 0, "failed": 0}
    assert told("ingest", "folder", HANDBOOK, "--corpus", "handbook", "--url-base", "https://tolliver.example")[
        "documents"
    ] == {"added": 0, "changed": 0, "unchanged": pages, "removed": 0, "failed": 0}
    assert [corpus["documents"] for corpus in told("corpora")["corpora"]] == [pages]

    answer = told("ask", "What does Ebbline cost?")
    assert answer["status"] == "answered"
    assert "95 euros a month" in answer["text"]
    passages = {hit["passage_id"]: hit["text"] for hit in told("search", "What does Ebbline cost?")["hits"]}
    for citation in answer["citations"]:
        assert citation["quote"] in passages[citation["passage_id"]]
        assert citation["url"].startswith("https://tolliver.example/")

    assert told("ask", "🎉", status=1)["error"]["kind"] == "question_without_words"
    assert told("ask", "x" * 100_000, status=1)["error"]["kind"] == "question_too_long"
    assert told("reindex")["passages"] == first["passages"]["added"]
    assert told("ask", "What does Ebbline cost?")["sentences"] == answer["sentences"]
    assert told("audit", "show", answer["answer_id"])["answer_id"] == answer["answer_id"]
    assert {turn["status"] for turn in told("audit", "list")["turns"]} == {"answered", "refused"}
    assert told("audit", "verify")["findings"] == []
