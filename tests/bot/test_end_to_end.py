"""The commands with nothing faked: ingest the example handbook, get footnoted answers."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from bot.cli.entry_point import app
from tests.ingest.sources.dumps import dump, page
from tests.thorough import thorough_only

HANDBOOK = str(Path(__file__).parents[2] / "examples" / "handbook")


def printed(*arguments: str, status: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"], prog_name="footnote")
    assert result.exit_code == status, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_commands_from_a_folder_to_a_verified_answer() -> None:
    printed("init")
    first = printed("ingest", "folder", HANDBOOK, "--corpus", "handbook", "--url-base", "https://tolliver.example")
    pages = first["documents"]["added"]
    assert pages >= 20
    assert first["documents"] == {"added": pages, "changed": 0, "unchanged": 0, "removed": 0, "failed": 0}
    assert printed("ingest", "folder", HANDBOOK, "--corpus", "handbook", "--url-base", "https://tolliver.example")[
        "documents"
    ] == {"added": 0, "changed": 0, "unchanged": pages, "removed": 0, "failed": 0}
    assert [corpus["documents"] for corpus in printed("corpora")["corpora"]] == [pages]

    answer = printed("ask", "What does Ebbline cost?")
    assert answer["status"] == "answered"
    assert "95 euros a month" in answer["text"]
    passages = {hit["passage_id"]: hit["text"] for hit in printed("search", "What does Ebbline cost?")["hits"]}
    for citation in answer["citations"]:
        assert all(part in passages[citation["passage_id"]] for part in citation["quote"].split(" … "))
        assert citation["url"].startswith("https://tolliver.example/")
        stored = printed("passages", citation["url"])["passages"]
        assert passages[citation["passage_id"]] in [passage["text"] for passage in stored]
    assert printed("passages", "Nowhere", status=1)["error"]["kind"] == "unknown_document"

    assert printed("ask", "🎉", status=1)["error"]["kind"] == "question_without_words"
    assert printed("ask", "x" * 100_000, status=1)["error"]["kind"] == "question_too_long"
    assert printed("reindex")["passages"] == first["passages"]["added"]
    assert printed("ask", "What does Ebbline cost?")["sentences"] == answer["sentences"]
    assert printed("audit", "show", answer["answer_id"])["answer_id"] == answer["answer_id"]
    assert {turn["status"] for turn in printed("audit", "list")["turns"]} == {"answered", "refused"}
    assert printed("audit", "verify")["findings"] == []


def document_counts(report: dict[str, Any]) -> dict[str, int]:
    return {outcome: count for outcome, count in report["documents"].items() if count}


@thorough_only
def test_truncated_dump_keeps_its_good_pages() -> None:
    articles = [page(n, f"Quay {n}", f"Quay {n} was built in {1900 + n}.") for n in (1, 2, 3)]
    whole = dump(*articles, page(4, "Old quay", "#REDIRECT [[Quay 1]]", redirect="Quay 1"))
    Path("whole.xml").write_bytes(whole)
    Path("cut.xml").write_bytes(whole[: whole.index(b"Quay 3 was")])
    fresh = [printed("ingest", "wikipedia", "--dump", "cut.xml", "--corpus", "fresh") for _ in range(2)]
    printed("ingest", "wikipedia", "--dump", "whole.xml", "--corpus", "known")
    known = [printed("ingest", "wikipedia", "--dump", "cut.xml", "--corpus", "known") for _ in range(2)]

    assert list(map(document_counts, fresh)) == [{"added": 2, "failed": 1}, {"unchanged": 2, "failed": 1}]
    assert list(map(document_counts, known)) == [{"unchanged": 3, "failed": 1}] * 2
    assert [failure["document"] for failure in known[1]["failures"]] == ["cut.xml"]
    assert [report["passages"] for report in known] == [{"added": 0, "removed": 0}] * 2
    assert printed("search", "Old quay", "--corpus", "known")["hits"][0]["title"] == "Quay 1"


def test_invalid_dump_is_refused_without_a_corpus() -> None:
    Path("page.html").write_text("<html></html>", encoding="utf-8")
    error = printed("ingest", "wikipedia", "--dump", "page.html", "--corpus", "wikipedia", status=1)["error"]

    assert error["kind"] == "dump"
    assert "is a web page, not an XML dump" in error["message"]
    assert error["hint"]
    assert printed("corpora")["corpora"] == []
