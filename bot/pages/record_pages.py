"""Show the record: answers by filters and words, one answer as a story, unanswered questions, and figures over time.

Each reading of an answer or a list is recorded before it is shown. Changes are further entries: ratings of an answer,
and its approval as an example.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial
from types import MappingProxyType
from typing import Any, get_args

from starlette.responses import RedirectResponse, Response

from bot.access import find_forgotten_documents
from bot.answering.example_pool import UnfitExample, approve_turn
from bot.answering.turn_record import read_kept_passages
from bot.app import Records
from bot.desk.answer_actions import MAX_COMMENT
from bot.desk.authorized_turn import build_action_entry
from bot.pages.figure_charts import draw_charts
from bot.pages.page_rendering import make_path, make_query
from bot.pages.page_router import NotFound, Visit
from bot.views.turn_story import build_story, list_passages
from pipeline.types import Status
from storage.record.proof.receipts import make_receipt
from storage.record.proof.signed_notes import load_key
from storage.record.record_search import RETRACTED, UNFINISHED, RecordFilter, Step
from storage.record.turn_index import ERASED
from storage.types import RECORD, EntryKind, LogEntry, Verdict

PAGE = 50
DAYS = 30  # how far figures and unanswered questions go back by default
MAX_STEPS = 400
MAX_WORDS = 500  # characters of a filter
STATUSES = (*(status.value for status in Status), UNFINISHED, RETRACTED, ERASED)
VERDICTS = tuple(verdict.value for verdict in Verdict)
RATINGS = MappingProxyType({"up": "helpful", "down": "not helpful", "any": "any"})
_TEXTS = ("platform", "channel", "asker", "status", "verdict", "corpus", "document", "rating", "words")
_MOMENTS = ("since", "until")


@dataclass(frozen=True)
class RecordPages:
    records: Records

    async def list_answers(self, visit: Visit) -> Response:
        chosen, typed, faults = read_filter(visit)
        turns = () if faults else await self.records.search.find(replace(chosen, limit=PAGE + 1))
        shown, more = turns[:PAGE], len(turns) > PAGE
        total = 0 if faults else await self.records.search.count(replace(chosen, before=None))
        place = {} if chosen.before is None else {"before": chosen.before}
        await self._record_read(visit, RECORD, {"what": "answers", "filter": typed | place})
        return visit.page(
            "answers.html",
            status=400 if faults else 200,
            turns=shown,
            total=total,
            typed=typed,
            faults=faults,
            older=make_query(typed | {"before": shown[-1].seq}) if more else "",
            newest=make_query(typed) if chosen.before is not None else None,
            choices={"status": STATUSES, "verdict": VERDICTS, "rating": RATINGS},
        )

    async def show_answer(self, visit: Visit) -> Response:
        """Show one answer as a story. Raises `NotFound`."""
        entries = await self._find_turn(visit)
        known = {**await self.records.manifest.recall(*list_passages(entries)), **_read_kept(entries)}
        story = build_story(entries, known)
        if story is None:
            raise NotFound("This is not an answer: nothing was asked.")
        await self._record_read(visit, story.turn_id, {"what": "answer"})
        approved = {example.turn_id for example in await self.records.examples.all()}
        done = _DONE.get(visit.asked("done"), "")
        return visit.page("answer.html", story=story, is_example=story.turn_id in approved, done=done)

    async def give_receipt(self, visit: Visit) -> Response:
        """Return the file that proves the record of an answer. Raises `NotFound`, `StorageError`."""
        turn_id = (await self._find_turn(visit))[0].turn_id
        await self._record_read(visit, turn_id, {"what": "receipt"})
        key = await asyncio.to_thread(load_key, visit.settings.record.key_path)
        receipt = await make_receipt(self.records.audit.database, turn_id, key)
        name = re.sub(r"[^\w-]", "", turn_id, flags=re.ASCII)
        headers = {"content-disposition": f'attachment; filename="receipt-{name}.json"'}
        return Response(receipt, media_type="application/json", headers=headers)

    async def rate(self, visit: Visit) -> Response:
        """Record a rating of an answer. Raises `NotFound`."""
        turn_id, what = (await self._find_turn(visit))[0].turn_id, visit.form.get("what", "")
        if what not in {"up", "down", "missed"}:
            raise NotFound("There is no such rating.")
        comment = visit.form.get("comment", "").strip()[:MAX_COMMENT]
        entry = build_action_entry(turn_id, what, visit.visitor.asker, **({"comment": comment} if comment else {}))
        await self.records.audit.append(entry)
        return _go_to(turn_id, "rated")

    async def approve(self, visit: Visit) -> Response:
        """Approve an answer as a worked example. Raises `NotFound`."""
        entries = await self._find_turn(visit)
        approver = visit.visitor.asker.user_id
        gone = partial(find_forgotten_documents, self.records.manifest)
        try:
            await approve_turn(entries, self.records.examples, approver, gone, where="pages")
        except (UnfitExample, ValueError):
            return _go_to(entries[0].turn_id, "unfit")
        return _go_to(entries[0].turn_id, "approved")

    async def list_unanswered(self, visit: Visit) -> Response:
        since, until, faults = _read_span(visit, await self.records.search.first())
        corpus = visit.asked("corpus")
        groups = await self.records.search.unanswered(since, until, corpus=corpus)
        members = [member.seq for group in groups[:PAGE] for member in group.members]
        near = await self.records.search.nearest_corpora(members)
        typed = {"since": visit.asked("since"), "until": visit.asked("until"), "corpus": corpus}
        await self._record_read(visit, RECORD, {"what": "unanswered", "filter": typed})
        listed = [
            (group.members, sorted({name for turn in group.members for name in near.get(turn.seq, ())}))
            for group in groups[:PAGE]
        ]
        more = max(len(groups) - PAGE, 0)
        return visit.page(
            "unanswered.html", groups=listed, more=more, typed=typed, faults=faults, since=since, last=_last_day(until)
        )

    async def show_figures(self, visit: Visit) -> Response:
        since, until, faults = _read_span(visit, await self.records.search.first())
        typed = visit.asked("step")
        step: Step = next((known for known in get_args(Step) if known == typed), "day")
        if faults or (until - since).days > MAX_STEPS:
            step = "month" if (until - since).days > 7 * MAX_STEPS else "week"
        rows = await self.records.search.figures(since, until, step)
        await self._record_read(visit, RECORD, {"what": "figures"})
        charts = draw_charts(rows, visit.settings.zone)
        return visit.page(
            "figures.html", rows=rows, charts=charts, step=step, since=since, last=_last_day(until), faults=faults
        )

    async def _find_turn(self, visit: Visit) -> Sequence[LogEntry]:
        turn_id = visit.request.path_params["turn_id"]
        if entries := await self.records.audit.turn(turn_id):
            return entries
        raise NotFound("The record has no such answer.")

    async def _record_read(self, visit: Visit, turn_id: str, facts: Mapping[str, Any]) -> None:
        """Record who reads what. If this raises `StorageError`, nothing may be shown."""
        stated = {name: value for name, value in facts.items() if value}
        body = {"by": visit.visitor.asker.user_id, **stated}
        await self.records.audit.append(LogEntry(turn_id, EntryKind.READ, body))


_DONE = MappingProxyType({
    "rated": "Your rating was recorded.",
    "approved": "This is a worked example now.",
    "unfit": "This cannot be a worked example: it is unconfirmed in part, not an answer, or retracted.",
})  # fmt: skip


def _go_to(turn_id: str, done: str) -> Response:
    return RedirectResponse(f"{make_path('answers', turn_id)}?done={done}", 303)


def _read_kept(entries: Sequence[LogEntry]) -> Mapping[str, Any]:
    try:
        return read_kept_passages(entries)
    except (ValueError, AttributeError, TypeError):
        return {}


def read_filter(visit: Visit) -> tuple[RecordFilter, dict[str, str], list[str]]:
    """Return the filter in a page's address, the values as typed, and the errors in them."""
    typed = {name: visit.asked(name)[:MAX_WORDS] for name in (*_TEXTS, *_MOMENTS)}
    since, wrong = read_day(typed["since"], visit.settings.zone)
    until, also = read_day(typed["until"], visit.settings.zone, end=True)
    before = visit.asked("before")
    number = int(before) if before.isascii() and before.isdecimal() and len(before) < _DIGITS else None
    texts: dict[str, Any] = {name: typed[name] for name in _TEXTS}
    chosen = RecordFilter(**texts, since=since, until=until, before=number)
    return chosen, typed, [fault for fault in (wrong, also) if fault]


_DIGITS = 18  # of a number that the database can compare


def read_day(typed: str, zone: tzinfo, *, end: bool = False) -> tuple[datetime | None, str]:
    """Return the beginning or the end of a day, and an error message, which is empty if the day can be read."""
    if not typed:
        return None, ""
    try:
        day = datetime.fromisoformat(typed)
        if len(typed) <= len("2026-01-01"):
            day = datetime.combine(day.date() + timedelta(days=end), time())
        return (day if day.tzinfo else day.replace(tzinfo=zone)).astimezone(UTC).astimezone(zone), ""
    except (ValueError, OverflowError):
        return None, f"“{typed}” is not a day like 2026-10-31."


def _last_day(until: datetime) -> datetime:
    """Return the last moment of a span of time that ends before `until`."""
    return until - timedelta(microseconds=1)


def _read_span(visit: Visit, begun: datetime | None) -> tuple[datetime, datetime, list[str]]:
    """Return the beginning and end of the span of time in a page's address, and the errors in them.

    The span is limited to the time since `begun`, when the record begins.
    """
    zone = visit.settings.zone
    since, wrong = read_day(visit.asked("since"), zone)
    until, also = read_day(visit.asked("until"), zone, end=True)
    now = datetime.now(zone)
    begin = begun or now
    last = max(begin, min(until or now, now))
    first = min(last, max(begin, since or last - timedelta(days=DAYS)))
    return (
        datetime.combine(first.astimezone(zone).date(), time(), zone),
        last,
        [fault for fault in (wrong, also) if fault],
    )
