"""Build the JSON documents of the command line: the contract with the programs that read them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.rendering.audit_summary import find_status
from bot.cli.terminal_output import Document, build_document, build_error, format_count, format_timestamp
from bot.server.refresh.run_history import is_silent, measure_rate
from bot.views.answer_text import find_asked_claim
from storage.types import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from bot.cli.rendering.audit_summary import RecordCheck, TurnEnds
    from bot.desk.types import TurnResult
    from bot.server.refresh.document_lookup import ForgottenDocument
    from bot.server.refresh.run_history import RefreshSummary
    from bot.views.error_messages import Fault
    from ingest.types import RefreshReport
    from pipeline.types import Answer, Usage
    from storage.types import CheckedClaim, Citation, CorpusInfo, DocumentRef, Hit, LogEntry, NightRecord, RefreshRun


def build_answer_document(done: TurnResult) -> Document:
    """Say what `ask` answered."""
    return build_document(**_build_answer(done))


def build_verdict_document(done: TurnResult, claim: str) -> Document:
    """Say what `check` found out about a claim."""
    found = find_asked_claim(done.answer)
    return build_document(
        answer_id=done.answer_id,
        claim=claim,
        verdict=found.verdict.value if found else None,
        reasoning=found.reasoning if found else "",
        evidence=[
            {"title": shown.title, "url": shown.url, "quote": shown.quote, "passage_id": shown.passage_id}
            for shown in done.answer.citations
        ],
        **_build_run_facts(done),
    )


def build_chat_document(turns: Iterable[TurnResult]) -> Document:
    """Say what `chat` answered, turn by turn."""
    return build_document(answers=[_build_answer(turn) for turn in turns])


def build_search_document(hits: Iterable[Hit]) -> Document:
    """Say what `search` found, best first."""
    return build_document(hits=[_build_hit(hit) for hit in hits])


def build_ingest_document(report: RefreshReport) -> Document:
    """Say what `ingest` of one source did."""
    return build_document(**_build_report(report))


def build_ingest_all_document(reports: Iterable[RefreshReport], faults: Mapping[str, Fault]) -> Document:
    """Say what `ingest all` did; with an error where a corpus could not be brought up to date."""
    done = build_document(corpora=[_build_report(report) for report in reports])
    if not faults:
        return done
    told = "; ".join(f"{corpus}: {fault.message}" for corpus, fault in faults.items())
    first = next(iter(faults.values()))
    return done | {"error": build_error(first.kind, told, first.hint)}


def build_corpora_document(
    corpora: Iterable[CorpusInfo], readers: Mapping[str, Sequence[str]], missing: Sequence[str] = ()
) -> Document:
    """Say what `corpora` lists; `missing` are corpora of the settings that were never read in."""
    return build_document(
        missing=list(missing),
        corpora=[
            {
                "name": corpus.name,
                "documents": corpus.documents,
                "passages": corpus.passages,
                "refreshed": format_timestamp(corpus.refreshed),
                "failures": corpus.failures,
                "edition": corpus.edition,
                "forgotten": corpus.forgotten,
                "last_run": _build_last_run(corpus.last_run),
                "readers": list(readers.get(corpus.name, ())),
            }
            for corpus in corpora
        ],
    )


def build_forget_document(done: ForgottenDocument) -> Document:
    """Say what `forget` forgot."""
    one = done.document
    return build_document(corpus=one.corpus, document=one.key, title=one.title, url=one.url, passages=done.passages)


def build_forgotten_document(away: Iterable[DocumentRef]) -> Document:
    """Say what `corpora --forgotten` lists."""
    return build_document(
        forgotten=[{"corpus": one.corpus, "document": one.key, "title": one.title, "url": one.url} for one in away]
    )


def build_reindex_document(passages: int, seconds: float) -> Document:
    """Say what `reindex` did."""
    return build_document(passages=passages, seconds=round(seconds, 3))


def build_init_document(path: str) -> Document:
    """Say where `init` wrote."""
    return build_document(path=path)


def _build_answer(done: TurnResult) -> Document:
    return {
        "answer_id": done.answer_id,
        "status": done.answer.status.value,
        "text": done.text,
        **_build_substance(done.answer),
        **_build_run_facts(done),
    }


def _build_run_facts(done: TurnResult) -> Document:
    return {
        "system": done.system,
        "model": done.model,
        "usage": _build_usage(done.usage),
        "seconds": round(done.seconds, 3),
    }


def _build_substance(answer: Answer) -> Document:
    return {
        "sentences": [
            {"text": said.text, "citations": list(said.citations), "note": said.note} for said in answer.sentences
        ],
        "citations": [_build_citation(citation) for citation in answer.citations],
        "claims": [_build_claim(claim) for claim in answer.claims],
        "nearest": [
            {"title": hit.document.title, "url": hit.document.url, "passage_id": hit.passage.id}
            for hit in answer.nearest
        ],
        "withheld": answer.withheld,
    }


def _build_citation(citation: Citation) -> Document:
    return {
        "number": citation.number,
        "corpus": citation.corpus,
        "title": citation.title,
        "section": citation.section,
        "url": citation.url,
        "revision": citation.revision,
        "date": format_timestamp(citation.date),
        "quote": citation.quote,
        "passage_id": citation.passage_id,
    }


def _build_claim(checked: CheckedClaim) -> Document:
    return {
        "text": checked.claim.text,
        "origin": checked.claim.origin,
        "verdict": checked.verdict.value,
        "evidence": list(checked.evidence),
    }


def _build_usage(usage: Usage) -> Document:
    return {
        "llm_calls": usage.llm_calls,
        "llm_rounds": usage.llm_rounds,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    }


def _build_hit(hit: Hit) -> Document:
    return {
        "passage_id": hit.passage.id,
        "corpus": hit.passage.corpus,
        "title": hit.document.title,
        "section": hit.passage.section,
        "url": hit.document.url,
        "text": hit.passage.text,
        "score": hit.score,
    }


def _build_report(report: RefreshReport) -> Document:
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


def _build_last_run(run: RefreshRun | None) -> Document | None:
    if run is None:
        return None
    return {
        "state": run.state.value,
        "begun": format_timestamp(run.begun),
        "ended": format_timestamp(run.ended),
        "fault": run.fault,
    }


def build_refreshes_document(found: RefreshSummary) -> Document:
    """Say what `ingest status` tells."""
    return build_document(
        running=[
            build_run(run) | _build_pace(run, found.now) | {"silent": is_silent(run, found.now)}
            for run in found.running
        ],
        next_night=format_timestamp(found.next_night),
        nights=[_build_night(night) for night in found.nights],
        runs=[build_run(run) for run in found.ended],
    )


def build_run(run: RefreshRun) -> Document:
    """Return what a document says of a run."""
    return {
        "id": run.id,
        "corpus": run.corpus,
        "state": run.state.value,
        "begun": format_timestamp(run.begun),
        "ended": format_timestamp(run.ended),
        "night": format_timestamp(run.night),
        "documents": {
            "added": run.added,
            "changed": run.changed,
            "unchanged": run.unchanged,
            "removed": run.removed,
            "failed": run.failed,
            "held_back": run.held_back,
        },
        "passages": {"added": run.passages_added, "removed": run.passages_removed},
        "edition": run.edition,
        "fault": run.fault,
        "owner": run.owner,
    }


def _build_pace(run: RefreshRun, now: datetime) -> Document:
    """Return how far a run that goes on has come: what was looked at, documents a second, seconds left."""
    per_second = measure_rate(run, now)
    left = (run.total - run.done) / per_second if run.total is not None and per_second else None
    return {
        "done": run.done,
        "total": run.total,
        "per_second": round(per_second, 3),
        "seconds_left": None if left is None else round(max(left, 0.0)),
        "seen": format_timestamp(run.seen),
        "doing": run.doing,
    }


def _build_night(night: NightRecord) -> Document:
    return {
        "due": format_timestamp(night.due),
        "outcome": night.outcome,
        "begun": format_timestamp(night.begun) if night.owner else None,
        "ended": format_timestamp(night.ended),
        "lines": list(night.lines),
        "owner": night.owner,
    }


def build_turns_document(listed: Iterable[TurnEnds]) -> Document:
    """Say what `audit list` lists, newest first."""
    return build_document(turns=[_build_turn(opened, closed) for opened, closed in listed])


def build_turn_document(entries: Iterable[LogEntry]) -> Document:
    """Say what `audit show` shows, oldest first: the entries of a turn, or of a channel, whose id is no turn's."""
    listed = list(entries)
    named = "channel" if listed[0].kind is EntryKind.SETTING else "answer_id"
    shown = [
        {"seq": entry.seq, "at": format_timestamp(entry.at), "kind": entry.kind.value, "body": entry.body}
        for entry in listed
    ]
    return build_document(**{named: listed[0].turn_id}, entries=shown)


def build_verification_document(checked: RecordCheck) -> Document:
    """Say what `audit verify` checked; with an error where something is wrong."""
    done = build_document(
        answers=checked.answers,
        sentences=checked.sentences,
        citations=checked.citations,
        findings=[{"answer_id": finding.turn_id, "what": finding.what} for finding in checked.findings],
    )
    return done | {"error": build_record_error(checked)} if checked.findings else done


def build_record_error(checked: RecordCheck) -> Document:
    """Say that the record contradicts itself."""
    message = f"The record has {format_count(len(checked.findings), 'fault')}."
    return build_error(
        "record_broken", message, "`footnote audit show ID` shows an answer; restore a backup of the home."
    )


def _build_turn(opened: LogEntry, closed: LogEntry | None) -> Document:
    return {
        "answer_id": opened.turn_id,
        "at": format_timestamp(opened.at),
        "question": opened.body.get("question", ""),
        "system": opened.body.get("system", ""),
        "status": find_status(closed),
        "seconds": closed.body.get("seconds") if closed else None,
    }
