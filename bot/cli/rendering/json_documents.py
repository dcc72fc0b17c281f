"""Build the JSON documents of the command line: the contract with the programs that read them. Pure."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from bot.cli.terminal_output import Document, build_document, build_error
from bot.views.catalog import find_asked_claim, render_reason
from bot.views.text_formats import format_count, format_timestamp
from storage.types import DocumentRef, EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bot.cli.rendering.audit_view import ListedExample, ListedPin
    from bot.server.refresh.document_lookup import ForgottenDocument
    from bot.server.refresh.run_history import RefreshSummary
    from bot.types import TurnResult
    from bot.views.error_messages import Fault
    from bot.views.turn_story import StoryPassage
    from ingest.types import RefreshReport
    from storage.record.proof.record_check import RecordCheck
    from storage.types import CheckedClaim, Citation, CorpusInfo, Hit, LogEntry, NightRecord, RefreshRun, StoredVersion


def pick(value: object, names: str) -> Document:
    """Return these attributes of a value as JSON has them: times as ISO 8601, members of enums as their values."""
    return {name: _as_json(getattr(value, name)) for name in names.split()}


def _as_json(value: object) -> object:
    # pydantic's TypeAdapter would write UTC as Z, which these documents never did.
    match value:
        case datetime():
            return format_timestamp(value)
        case Enum():
            return value.value
        case tuple():
            return [_as_json(one) for one in value]
    return value


def build_answer_document(done: TurnResult) -> Document:
    return build_document(**_build_answer(done))


def build_verdict_document(done: TurnResult, claim: str) -> Document:
    found = find_asked_claim(done.answer)
    return build_document(
        answer_id=done.answer_id,
        claim=claim,
        verdict=found.verdict.value if found else None,
        reasoning=_state_reason(found, done.answer.citations) if found else "",
        evidence=[pick(shown, "title url quote passage_id") for shown in done.answer.citations],
        **_build_run_facts(done),
    )


def _state_reason(found: CheckedClaim, citations: Sequence[Citation]) -> str:
    """Return the rules' own reasoning, or what the evidence says where a model gave the verdict."""
    return found.reasoning if found.because else render_reason(found, "en", citations)


def build_chat_document(turns: Iterable[TurnResult]) -> Document:
    return build_document(answers=[_build_answer(turn) for turn in turns])


def build_search_document(hits: Iterable[Hit]) -> Document:
    return build_document(
        hits=[
            {
                "passage_id": hit.passage.id,
                "corpus": hit.passage.corpus,
                "title": hit.document.title,
                "section": hit.passage.section,
                "url": hit.document.url,
                "text": hit.passage.text,
                "score": hit.score,
            }
            for hit in hits
        ]
    )


def build_ingest_document(report: RefreshReport) -> Document:
    return build_document(**_build_report(report))


def build_preview_document(files: Iterable[tuple[str, str]]) -> Document:
    listed = list(files)
    return build_document(
        read=[path for path, reason in listed if not reason],
        left_out=[{"path": path, "reason": reason} for path, reason in listed if reason],
    )


def build_ingest_all_document(reports: Iterable[RefreshReport], faults: Mapping[str, Fault]) -> Document:
    done = build_document(corpora=[_build_report(report) for report in reports])
    if not faults:
        return done
    messages = "; ".join(f"{corpus}: {fault.message}" for corpus, fault in faults.items())
    first = next(iter(faults.values()))
    return done | {"error": build_error(first.kind, messages, first.hint)}


def build_corpora_document(
    corpora: Iterable[CorpusInfo], readers: Mapping[str, Sequence[str]], missing: Sequence[str] = ()
) -> Document:
    return build_document(
        missing=list(missing),
        corpora=[
            {
                **pick(corpus, "name documents passages dense refreshed failures edition forgotten"),
                "last_run": pick(corpus.last_run, "state begun ended fault") if corpus.last_run else None,
                "readers": list(readers.get(corpus.name, ())),
            }
            for corpus in corpora
        ],
    )


def build_forget_document(done: ForgottenDocument) -> Document:
    return build_document(**_build_listed(done.document), passages=done.passages)


def build_passages_document(found: StoredVersion) -> Document:
    of = found.document
    about = _build_listed(DocumentRef(of.corpus, of.key, of.title, of.url))
    rows = [
        {"passage_id": one.id, "section": one.section, "kind": one.kind.value, "text": one.text}
        for one in found.passages
    ]
    date = format_timestamp(of.date) if of.date else None
    return build_document(**about, revision=of.revision, date=date, aliases=list(of.aliases), passages=rows)


def build_forgotten_document(away: Iterable[DocumentRef]) -> Document:
    return build_document(forgotten=[_build_listed(one) for one in away])


def build_reindex_document(passages: int, seconds: float) -> Document:
    return build_document(passages=passages, seconds=round(seconds, 3))


def build_init_document(path: str, key: str) -> Document:
    return build_document(path=path, key=key)


def build_refreshes_document(found: RefreshSummary) -> Document:
    return build_document(
        running=[build_run(run) | _build_pace(run, found.now) for run in found.running],
        next_night=format_timestamp(found.next_night),
        nights=[_build_night(night) for night in found.nights],
        runs=[build_run(run) for run in found.ended],
    )


def build_run(run: RefreshRun) -> Document:
    return {
        **pick(run, "id corpus state begun ended night"),
        "documents": pick(run, "added changed unchanged removed failed held_back"),
        "passages": {"added": run.passages_added, "removed": run.passages_removed},
        **pick(run, "edition fault owner"),
    }


def build_turn_document(entries: Iterable[LogEntry], passages: Iterable[StoryPassage] = ()) -> Document:
    """Build the document of `audit show`: the entries of a turn, with its passages, or of a channel."""
    listed = list(entries)
    named = "channel" if listed[0].kind is EntryKind.SETTING else "answer_id"
    return build_document(
        **{named: listed[0].turn_id},
        entries=[pick(entry, "seq at kind erased damaged") | {"body": entry.body} for entry in listed],
        passages=[pick(one, "id corpus document title section text url") for one in passages],
    )


def build_examples_document(listed: Iterable[ListedExample]) -> Document:
    return build_document(examples=[_build_example(one) for one in listed])


def _build_example(one: ListedExample) -> Document:
    known = {"question": one.question, "corpora": list(one.demo.corpora) if one.demo else []}
    return {"answer_id": one.kept.turn_id, **known, **pick(one.kept, "by at pinned"), "shown": one.shown}


def build_pins_document(listed: Iterable[ListedPin]) -> Document:
    return build_document(answers=[_build_pin(one) for one in listed])


def _build_pin(one: ListedPin) -> Document:
    text = " ".join(said.text for said in one.pinned.sentences)
    known = pick(one.pinned, "question name day corpora")
    return {"answer_id": one.pinned.turn_id, **known, "text": text, "said": one.said}


def build_verification_document(checked: RecordCheck) -> Document:
    done = build_document(
        **pick(checked, "entries answers sentences citations erased checkpoints covered"),
        root=checked.root.hex(),
        findings=[{"answer_id": finding.turn_id, "what": finding.what} for finding in checked.findings],
        notices=[{"answer_id": notice.turn_id, "what": notice.what} for notice in checked.notices],
    )
    return done | {"error": build_record_error(checked)} if checked.findings else done


def build_record_error(checked: RecordCheck) -> Document:
    message = f"The record has {format_count(len(checked.findings), 'fault')}."
    return build_error(
        "record_broken", message, "`footnote audit show ID` shows an answer; docs/audit.md says what to do."
    )


def _build_answer(done: TurnResult) -> Document:
    answer = done.answer
    return {
        "answer_id": done.answer_id,
        "status": answer.status.value,
        "text": done.text,
        "sentences": [pick(said, "text citations note") for said in answer.sentences],
        "citations": [
            pick(one, "number corpus title section url revision date quote passage_id") for one in answer.citations
        ],
        "claims": [pick(one.claim, "text origin") | pick(one, "verdict evidence") for one in answer.claims],
        "nearest": [pick(hit.document, "title url") | {"passage_id": hit.passage.id} for hit in answer.nearest],
        "withheld": answer.withheld,
        **_build_run_facts(done),
    }


def _build_run_facts(done: TurnResult) -> Document:
    pinned = {"pinned": pick(done.pinned, "turn_id name day")} if done.pinned else {}
    return {
        **pinned,
        "system": done.system,
        **({"effort": done.effort} if done.effort else {}),
        "model": done.model,
        "usage": pick(done.usage, "llm_calls llm_rounds prompt_tokens cached_tokens completion_tokens cost"),
        "seconds": round(done.seconds, 3),
    }


def _build_report(report: RefreshReport) -> Document:
    return {
        "corpus": report.corpus,
        "documents": pick(report, "added changed unchanged removed failed"),
        "passages": {"added": report.passages_added, "removed": report.passages_removed},
        **pick(report, "held_back forgotten"),
        "failures": [{"document": document, "reason": reason} for document, reason in report.failures],
        "left_out": dict(report.left_out),
        "seconds": round(report.seconds, 3),
    }


def _build_listed(one: DocumentRef) -> Document:
    return {"corpus": one.corpus, "document": one.key, "title": one.title, "url": one.url}


def _build_pace(run: RefreshRun, now: datetime) -> Document:
    from bot.server.refresh.run_history import is_silent, measure_rate

    per_second = measure_rate(run, now)
    left = (run.total - run.done) / per_second if run.total is not None and per_second else None
    return {
        **pick(run, "done total"),
        "per_second": round(per_second, 3),
        "seconds_left": None if left is None else round(max(left, 0.0)),
        **pick(run, "seen doing"),
        "silent": is_silent(run, now),
    }


def _build_night(night: NightRecord) -> Document:
    return {
        **pick(night, "due outcome"),
        "begun": format_timestamp(night.begun) if night.owner else None,
        **pick(night, "ended lines owner"),
    }
