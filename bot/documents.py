"""The JSON documents of the command line, made from our values. Pure; the contract for whoever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bot.record import status_of
from bot.tables import counted
from bot.wording import claim_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from bot.console import Fault
    from bot.record import Listed, Verified
    from bot.turns import Answered
    from ingest.refreshing import RefreshReport
    from pipeline.types import Answer, Usage
    from storage.types import CheckedClaim, Citation, CorpusInfo, Hit, LogEntry

SCHEMA = 1
Document = dict[str, Any]


def failed(kind: str, message: str, hint: str) -> Document:
    """Say that a command failed, and why."""
    return _document(error=_error(kind, message, hint))


def answered(done: Answered) -> Document:
    """Say what `ask` answered."""
    return _document(**_answered(done))


def checked(done: Answered, claim: str) -> Document:
    """Say what `check` found out about a claim."""
    found = claim_of(done.answer)
    return _document(
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
    return _document(answers=[_answered(turn) for turn in turns])


def found(hits: Iterable[Hit]) -> Document:
    """Say what `search` found, best first."""
    return _document(hits=[_hit(hit) for hit in hits])


def ingested(report: RefreshReport) -> Document:
    """Say what `ingest` of one source did."""
    return _document(**_report(report))


def all_ingested(reports: Iterable[RefreshReport], faults: Mapping[str, Fault]) -> Document:
    """Say what `ingest all` did; with an error where a corpus could not be brought up to date."""
    done = _document(corpora=[_report(report) for report in reports])
    if not faults:
        return done
    told = "; ".join(f"{corpus}: {fault.message}" for corpus, fault in faults.items())
    first = next(iter(faults.values()))
    return done | {"error": _error(first.kind, told, first.hint)}


def indexed(corpora: Iterable[CorpusInfo], readers: Mapping[str, Sequence[str]]) -> Document:
    """Say what `corpora` lists."""
    return _document(
        corpora=[
            {
                "name": corpus.name,
                "documents": corpus.documents,
                "passages": corpus.passages,
                "refreshed": _moment(corpus.refreshed),
                "failures": corpus.failures,
                "readers": list(readers.get(corpus.name, ())),
            }
            for corpus in corpora
        ]
    )


def reindexed(passages: int, seconds: float) -> Document:
    """Say what `reindex` did."""
    return _document(passages=passages, seconds=round(seconds, 3))


def written(path: str) -> Document:
    """Say where `init` wrote."""
    return _document(path=path)


def turns(listed: Iterable[Listed]) -> Document:
    """Say what `audit list` lists, newest first."""
    return _document(turns=[_turn(opened, closed) for opened, closed in listed])


def turn(entries: Iterable[LogEntry]) -> Document:
    """Say what `audit show` shows: the entries of one turn, oldest first."""
    listed = list(entries)
    return _document(
        answer_id=listed[0].turn_id,
        entries=[
            {"seq": entry.seq, "at": _moment(entry.at), "kind": entry.kind.value, "body": entry.body}
            for entry in listed
        ],
    )


def verified(checked: Verified) -> Document:
    """Say what `audit verify` checked; with an error where something is wrong."""
    done = _document(
        answers=checked.answers,
        sentences=checked.sentences,
        citations=checked.citations,
        findings=[{"answer_id": finding.turn_id, "what": finding.what} for finding in checked.findings],
    )
    return done | {"error": broken_record(checked)} if checked.findings else done


def broken_record(checked: Verified) -> Document:
    """Say that the record contradicts itself."""
    message = f"The record has {counted(len(checked.findings), 'fault')}."
    return _error("record_broken", message, "`footnote audit show ID` shows an answer; restore a backup of the home.")


def _error(kind: str, message: str, hint: str) -> Document:
    return {"kind": kind, "message": message, "hint": hint}


def _turn(opened: LogEntry, closed: LogEntry | None) -> Document:
    return {
        "answer_id": opened.turn_id,
        "at": _moment(opened.at),
        "question": opened.body.get("question", ""),
        "system": opened.body.get("system", ""),
        "status": status_of(closed),
        "seconds": closed.body.get("seconds") if closed else None,
    }


def _document(**content: Any) -> Document:
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
        "date": _moment(citation.date),
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
        "failures": [{"document": document, "reason": reason} for document, reason in report.failures],
        "seconds": round(report.seconds, 3),
    }


def _moment(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
