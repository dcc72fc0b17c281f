"""Put true and altered statements to the check of `footnote check`, without a model."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from bot.access import Asker
from bot.answering import check
from bot.desk.types import TurnRequest
from bot.settings.settings_tables import Settings
from bot.wiring import open_app
from evaluation import EvaluationError
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.folder import FolderSource
from ingest.types import DocumentSource
from storage.types import Verdict

STATEMENTS_FORM = (
    'Its form: {"corpus": name, "dump" or "folder": path, "statements": [{"claim": text, "true": true or false}]}.'
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, whether it is true, and what was altered in it if not."""

    claim: str
    true: bool
    altered: str = ""


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
    """Check true and altered statements against the documents they are about, without a model.

    Example: python -m tools.statement_check tools/facts/enwiki_2016_statements.json
    """
    corpus, source, told = read_statements(file)
    with TemporaryDirectory() as scratch:
        found = asyncio.run(_check_statements(corpus, source, told, home or Path(scratch)))
    print(json.dumps(build_document(found)) if as_json else "\n".join(_lines(found)))


def read_statements(file: Path) -> tuple[str, DocumentSource, Sequence[Statement]]:
    """Return the corpus, its source, and the statements. Raises `EvaluationError` for a file of another form."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        told = [Statement(one["claim"], one["true"], one.get("altered", "")) for one in kept["statements"]]
        where = str(kept.get("dump") or kept["folder"]).replace("$FOOTNOTE_DATA", os.environ.get("FOOTNOTE_DATA", ""))
        source: DocumentSource = WikipediaDump(Path(where)) if "dump" in kept else FolderSource(Path(where))
        return kept["corpus"], source, told
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{file} cannot be read as statements: {error!r}.", hint=STATEMENTS_FORM) from error


async def _check_statements(
    corpus: str, source: DocumentSource, told: Sequence[Statement], home: Path
) -> list[CheckedStatement]:
    async with open_app(Settings(home=home)) as app:
        await refresh_corpus(source, corpus, app.passages, progress=lambda _: None)
        done = [await check(app, TurnRequest(one.claim, Asker("terminal", "terminal")), lambda _: None) for one in told]
    claims = [next(claim for claim in one.answer.claims if claim.claim.origin == "user") for one in done]
    each = zip(told, claims, done, strict=True)
    return [CheckedStatement(one, claim.verdict, claim.reasoning, whole.seconds) for one, claim, whole in each]


def build_document(found: Sequence[CheckedStatement]) -> dict[str, Any]:
    """Return the counts by verdict, of true statements and of altered ones, and every statement."""
    return {
        "schema": 1,
        "true": _counts([one for one in found if one.statement.true]),
        "altered": _counts([one for one in found if not one.statement.true]),
        "statements": [
            {
                "claim": one.statement.claim,
                "true": one.statement.true,
                "altered": one.statement.altered,
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
        f"{'true   ' if one.statement.true else 'altered'}  {one.verdict:15}  {one.statement.claim}" for one in found
    ]
    told = build_document(found)
    return [*lines, "", *(f"{kind}: {told[kind]}" for kind in ("true", "altered"))]


if __name__ == "__main__":
    typer.run(statements)
