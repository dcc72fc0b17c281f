"""The JSON documents of the command line, made from our values. Pure; the contract for whoever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bot.wording import claim_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from bot.console import Fault
    from bot.refreshing.forgotten import Forgotten
    from bot.turns import Answered
    from ingest.refreshing import RefreshReport
    from pipeline.types import Answer, Usage
    from storage.refresh_types import Listed, Run
    from storage.types import CheckedClaim, Citation, CorpusInfo, Hit

SCHEMA = 1
Document = dict[str, Any]


def failed(kind: str, message: str, hint: str) -> Document:
    """Say that a command failed, and why."""
    return document(error=error(kind, message, hint))


def answered(done: Answered) -> Document:
    """Say what `ask` answered."""
    return document(**_answered(done))


def checked(done: Answered, claim: str) -> Document:
    """Say what `check` found out about a claim."""
    found = claim_of(done.answer)
    return document(
        answer_id=done.answer_id,
        claim=claim,
        verdict=found.verdict.value if found else None,
        reasoning=found.reasoning if found else "",
        evidence=[
            {"title": shown.title, "url": shown.url, "quote": shown.quote, "passage_id": shown.passage_id}
            for shown in done.answer.citations
        ],
        **_ran(done),
    )


def chatted(turns: Iterable[Answered]) -> Document:
    """Say what `chat` answered, turn by turn."""
    return document(answers=[_answered(turn) for turn in turns])


def found(hits: Iterable[Hit]) -> Document:
    """Say what `search` found, best first."""
    return document(hits=[_hit(hit) for hit in hits])


def ingested(report: RefreshReport) -> Document:
    """Say what `ingest` of one source did."""
    return document(**_report(report))


def all_ingested(reports: Iterable[RefreshReport], faults: Mapping[str, Fault]) -> Document:
    """Say what `ingest all` did; with an error where a corpus could not be brought up to date."""
    done = document(corpora=[_report(report) for report in reports])
    if not faults:
        return done
    told = "; ".join(f"{corpus}: {fault.message}" for corpus, fault in faults.items())
    first = next(iter(faults.values()))
    return done | {"error": error(first.kind, told, first.hint)}


def indexed(
    corpora: Iterable[CorpusInfo], readers: Mapping[str, Sequence[str]], missing: Sequence[str] = ()
) -> Document:
    """Say what `corpora` lists; `missing` are corpora of the settings that were never read in."""
    return document(
        missing=list(missing),
        corpora=[
            {
                "name": corpus.name,
                "documents": corpus.documents,
                "passages": corpus.passages,
                "refreshed": moment(corpus.refreshed),
                "failures": corpus.failures,
                "edition": corpus.edition,
                "forgotten": corpus.forgotten,
                "last_run": _last_run(corpus.last_run),
                "readers": list(readers.get(corpus.name, ())),
            }
            for corpus in corpora
        ],
    )


def forgotten(done: Forgotten) -> Document:
    """Say what `forget` forgot."""
    one = done.document
    return document(corpus=one.corpus, document=one.key, title=one.title, url=one.url, passages=done.passages)


def all_forgotten(away: Iterable[Listed]) -> Document:
    """Say what `corpora --forgotten` lists."""
    return document(
        forgotten=[{"corpus": one.corpus, "document": one.key, "title": one.title, "url": one.url} for one in away]
    )


def reindexed(passages: int, seconds: float) -> Document:
    """Say what `reindex` did."""
    return document(passages=passages, seconds=round(seconds, 3))


def written(path: str) -> Document:
    """Say where `init` wrote."""
    return document(path=path)


def error(kind: str, message: str, hint: str) -> Document:
    """Return what a document says of a failure."""
    return {"kind": kind, "message": message, "hint": hint}


def document(**content: Any) -> Document:
    """Return a document of these keys, with the version of their meaning."""
    return {"schema": SCHEMA, **content}


def _answered(done: Answered) -> Document:
    return {
        "answer_id": done.answer_id,
        "status": done.answer.status.value,
        "text": done.text,
        **_substance(done.answer),
        **_ran(done),
    }


def _ran(done: Answered) -> Document:
    return {
        "system": done.system,
        "model": done.model,
        "usage": _usage(done.usage),
        "seconds": round(done.seconds, 3),
    }


def _substance(answer: Answer) -> Document:
    return {
        "sentences": [
            {"text": said.text, "citations": list(said.citations), "note": said.note} for said in answer.sentences
        ],
        "citations": [_citation(citation) for citation in answer.citations],
        "claims": [_claim(claim) for claim in answer.claims],
        "nearest": [
            {"title": hit.document.title, "url": hit.document.url, "passage_id": hit.passage.id}
            for hit in answer.nearest
        ],
        "withheld": answer.withheld,
    }


def _citation(citation: Citation) -> Document:
    return {
        "number": citation.number,
        "corpus": citation.corpus,
        "title": citation.title,
        "section": citation.section,
        "url": citation.url,
        "revision": citation.revision,
        "date": moment(citation.date),
        "quote": citation.quote,
        "passage_id": citation.passage_id,
    }


def _claim(checked: CheckedClaim) -> Document:
    return {
        "text": checked.claim.text,
        "origin": checked.claim.origin,
        "verdict": checked.verdict.value,
        "evidence": list(checked.evidence),
    }


def _usage(usage: Usage) -> Document:
    return {
        "llm_calls": usage.llm_calls,
        "llm_rounds": usage.llm_rounds,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    }


def _hit(hit: Hit) -> Document:
    return {
        "passage_id": hit.passage.id,
        "corpus": hit.passage.corpus,
        "title": hit.document.title,
        "section": hit.passage.section,
        "url": hit.document.url,
        "text": hit.passage.text,
        "score": hit.score,
    }


def _report(report: RefreshReport) -> Document:
    return {
        "corpus": report.corpus,
        "documents": {
            "added": report.added,
            "changed": report.changed,
            "unchanged": report.unchanged,
            "removed": report.removed,
            "failed": report.failed,
        },
        "passages": {"added": report.passages_added, "removed": report.passages_removed},
        "held_back": report.held_back,
        "forgotten": report.forgotten,
        "failures": [{"document": document, "reason": reason} for document, reason in report.failures],
        "seconds": round(report.seconds, 3),
    }


def _last_run(run: Run | None) -> Document | None:
    if run is None:
        return None
    return {"state": run.state.value, "begun": moment(run.begun), "ended": moment(run.ended), "fault": run.fault}


def moment(at: datetime | None) -> str | None:
    """Return a moment as ISO 8601."""
    return at.isoformat() if at else None
