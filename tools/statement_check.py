"""Put labelled statements to the check of `footnote check`, without a model."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from bot.access import Asker
from bot.answering.question_answering import check
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest
from bot.views.catalog import render_reason
from bot.wiring import open_app
from evaluation import EvaluationError
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.folder import FolderSource
from ingest.types import DocumentSource
from storage.types import Verdict

STATEMENTS_FORM = (
    'Its form: {"corpora": {name: {"dump" or "folder": path}}, "statements": [{"corpus": name, "claim": text, '
    '"label": "true", "altered", "another" or "unknown", "kind": text}]}.'
)


class Label(StrEnum):
    """What documents say of a statement: so, otherwise, something like it of another thing, or nothing."""

    TRUE = "true"
    ALTERED = "altered"
    ANOTHER = "another"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about a corpus, and what its documents say of it; `kind` tells what was altered in it."""

    corpus: str
    claim: str
    label: Label
    kind: str = ""


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """What the check made of a statement, and in how many seconds."""

    statement: Statement
    verdict: Verdict
    reasoning: str
    seconds: float


def statements(
    file: Annotated[Path, typer.Argument(help="A file of statements about documents.")],
    home: Annotated[Path | None, typer.Option(help="Keep the index here; else it is made anew.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check labelled statements against the documents they are about, without a model.

    Example: python -m tools.statement_check tools/facts/statements_tuned.json
    """
    sources, told = read_statements(file)
    with TemporaryDirectory() as scratch:
        found = asyncio.run(check_statements(sources, told, home or Path(scratch)))
    print(json.dumps(build_document(found)) if as_json else "\n".join(_lines(found)))


def read_statements(file: Path) -> tuple[Mapping[str, DocumentSource], Sequence[Statement]]:
    """Return the corpora's sources by name, and the statements. Raises `EvaluationError` for a file of another form."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        sources = {name: _open_source(where, file.parent) for name, where in kept["corpora"].items()}
        told = [
            Statement(one["corpus"], one["claim"], Label(one["label"]), one.get("kind", ""))
            for one in kept["statements"]
        ]
        return {name: sources[name] for name in dict.fromkeys(one.corpus for one in told)}, told
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EvaluationError(f"{file} cannot be read as statements: {error!r}.", hint=STATEMENTS_FORM) from error


def _open_source(where: Mapping[str, str], beside: Path) -> DocumentSource:
    data = os.environ.get("FOOTNOTE_DATA", "")
    path = beside / str(where.get("dump") or where["folder"]).replace("$FOOTNOTE_DATA", data)
    return WikipediaDump(path) if "dump" in where else FolderSource(path)


async def check_statements(
    sources: Mapping[str, DocumentSource], told: Sequence[Statement], home: Path
) -> list[CheckedStatement]:
    """Index the sources in `home`, and check each statement against its corpus."""
    asker = Asker("terminal", "terminal")
    async with open_app(Settings(home=home)) as app:
        for corpus, source in sources.items():
            await refresh_corpus(source, corpus, app.passages, progress=lambda _: None)
        done = [await check(app, TurnRequest(one.claim, asker, corpora=(one.corpus,)), lambda _: None) for one in told]
    claims = [next(claim for claim in one.answer.claims if claim.claim.origin == "user") for one in done]
    each = zip(told, claims, done, strict=True)
    return [
        CheckedStatement(one, claim.verdict, render_reason(claim, "en", whole.answer.citations), whole.seconds)
        for one, claim, whole in each
    ]


def build_document(found: Sequence[CheckedStatement]) -> dict[str, Any]:
    """Return the counts of verdicts by label, and every statement."""
    return {
        "schema": 2,
        **{label.value: _counts([one for one in found if one.statement.label is label]) for label in Label},
        "statements": [
            {
                "corpus": one.statement.corpus,
                "claim": one.statement.claim,
                "label": one.statement.label.value,
                "kind": one.statement.kind,
                "verdict": one.verdict.value,
                "reasoning": one.reasoning,
                "seconds": round(one.seconds, 3),
            }
            for one in found
        ],
    }


def _counts(found: Sequence[CheckedStatement]) -> dict[str, int]:
    return {verdict.value: sum(one.verdict is verdict for one in found) for verdict in Verdict}


def _lines(found: Sequence[CheckedStatement]) -> list[str]:
    lines = [
        f"{one.statement.label:8}  {one.verdict:15}  {one.statement.claim}\n{'':10}{one.reasoning}" for one in found
    ]
    told = build_document(found)
    return [*lines, "", *(f"{label.value}: {told[label.value]}" for label in Label)]


if __name__ == "__main__":
    typer.run(statements)
