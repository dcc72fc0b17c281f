"""Recheck answers when pages that they cite have changed, and report answers that no longer hold.

Findings are recorded first, and each is reported once: in one digest a day to the admins, or in one note beneath the
answer if its cited pages may still be read there. Answers that were retracted or erased, or cite a forgotten page, are
skipped. If several processes share the database, only one of them rechecks.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.access import Asker, find_forgotten_documents
from bot.answering.turn_record import TurnRecord, read_turn_record
from bot.app import App
from bot.desk.answer_actions import build_note_question
from bot.desk.authorized_turn import decode_without_handle, is_asker_only
from bot.desk.channel_settings import find_searchable_corpora, load_channel_settings
from bot.desk.platform_port import Platform, PlatformError, PlatformUnavailable
from bot.desk.supervisor import run_beside
from bot.server.refresh.changed_citations import Pages, find_lost_sentences
from bot.types import Place, PostedMessages, Question
from bot.views.catalog import translate
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import format_count
from bot.views.view_reducer import build_notice_view, shorten_line, shorten_question
from bot.wiring import build_records
from pipeline.support.support_check import find_verbatim_passage
from storage.clock import Clock
from storage.database.refresh_log import NIGHT_LEASE, Leases, RefreshLog
from storage.errors import StorageError
from storage.types import Document, DocumentId, EntryKind, LogEntry, Passage, RunState

log = logging.getLogger(__name__)

LOOK_SECONDS = 600.0
_LEASE = "recheck"
_RUN_STANDS = timedelta(minutes=10)  # a refresh without a sign of life for so long no longer delays rechecks
_DIGEST_GAP, _DAY = timedelta(hours=20), timedelta(days=1)
_BATCH = 50  # documents or turns that are loaded at once
_MOST_SAID, _MOST_QUOTED = 3, 300  # the most sentences in a note, and the most characters of each


@dataclass(frozen=True, slots=True)
class _RecheckedTurn:
    """An answer that may still be reported."""

    record: TurnRecord
    entries: tuple[LogEntry, ...]

    @property
    def known(self) -> frozenset[str]:
        """The sentences that an earlier recheck found lost."""
        return frozenset(sentence["text"] for body in self._bodies for sentence in body.get("lost", ()))

    @property
    def lost(self) -> list[Mapping[str, str]]:
        """The lost sentences that are not reported yet."""
        untold = list[Mapping[str, str]]()
        for body in self._bodies:
            untold += body.get("lost", ())
            if "told" in body and not body.get("again") and body.get("state") != "begun":
                untold.clear()
        return untold

    @property
    def _bodies(self) -> list[Mapping[str, Any]]:
        return [entry.body for entry in self.entries if entry.kind is EntryKind.RECHECK]


@dataclass
class CitationRecheck:
    """Rechecks the citations of recent answers when their corpora change. Remembers which versions it has checked."""

    app: App
    platforms: Mapping[str, Platform]  # the connected ones, by name
    owner: str
    clock: Clock
    _generations: dict[str, int] = field(default_factory=dict)  # of the corpora, at the last check
    _digests: dict[DocumentId, str] = field(default_factory=dict)  # of the cited documents' passages, at the last check

    async def look(self) -> None:
        """Recheck citations whose pages changed, and send pending notices. Failures are logged and retried later."""
        record = self.app.settings.record
        if record.recheck == "off" or not record.recheck_days:
            return
        database = self.app.manifest.database
        try:
            if await Leases(database).take(_LEASE, self.owner, self.clock(), 3 * LOOK_SECONDS):
                since = self.clock() - timedelta(days=record.recheck_days)
                if not await self._is_refreshing():
                    await self._check(since)
                    await self._notify(since)
        except StorageError as error:
            log.warning("rechecking answers failed, retrying", extra={"cause": f"{error} {error.hint}"})
        except Exception:
            log.exception("rechecking answers failed, retrying")

    async def _is_refreshing(self) -> bool:
        """Return whether a refresh is running. The recheck waits for its end, to report all changes together."""
        if await Leases(self.app.manifest.database).holder(NIGHT_LEASE, self.clock()):
            return True
        runs = (await RefreshLog(self.app.manifest.database).last()).values()
        return any(run.state is RunState.RUNNING and self.clock() - run.seen < _RUN_STANDS for run in runs)

    async def _check(self, since: datetime) -> None:
        generations = {info.name: info.generation for info in await self.app.manifest.catalogue()}
        moved = [name for name, generation in generations.items() if self._generations.get(name) != generation]
        if not moved:
            return
        records = build_records(self.app.manifest.database).search
        cited = await records.citations_since(since, moved)
        digests = await self._digest_documents({document for _, document in cited})
        changed = {one for one, digest in digests.items() if self._digests.get(one) != digest}
        turn_ids = list(dict.fromkeys(turn_id for turn_id, document in cited if document in changed))
        for first in range(0, len(turn_ids), _BATCH):
            for entries in (await records.entries_of(turn_ids[first : first + _BATCH])).values():
                await self._check_turn(entries)
        self._generations |= generations
        self._digests |= digests

    async def _digest_documents(self, documents: set[DocumentId]) -> dict[DocumentId, str]:
        ordered, digests = sorted(documents), dict[DocumentId, str]()
        for first in range(0, len(ordered), _BATCH):
            chunk = ordered[first : first + _BATCH]
            pages = await self._load_pages(chunk)
            for one in chunk:
                passage_ids = "\n".join(passage.id for passage in pages[one][1]) if one in pages else ""
                digests[one] = hashlib.sha256(passage_ids.encode()).hexdigest() if passage_ids else ""
        return digests

    async def _load_pages(self, documents: Sequence[DocumentId]) -> Pages:
        pages = dict[DocumentId, tuple[Document, tuple[Passage, ...]]]()
        for corpus in {corpus for corpus, _ in documents}:
            stored = await self.app.manifest.stored(corpus, [key for name, key in documents if name == corpus])
            pages |= {(corpus, key): (page.document, page.passages) for key, page in stored.items()}
        return pages

    async def _check_turn(self, entries: tuple[LogEntry, ...]) -> None:
        turn = await self._read(entries)
        if not (turn and turn.record.result):
            return
        record, known = turn.record, turn.known
        pages = await self._load_pages(sorted(record.stated))
        lost_sentences = await find_lost_sentences(turn.record.result.answer, pages, self.app.supports, record.question)
        lost = [
            one
            for one in lost_sentences
            if one.text not in known and not (one.removed and await self._is_quoted_elsewhere(one.corpus, one.was))
        ]
        if lost:
            await self.app.audit.append(LogEntry(record.turn_id, EntryKind.RECHECK, {"lost": lost}))

    async def _is_quoted_elsewhere(self, corpus: str, quote: str) -> bool:
        """Return whether another page of the corpus contains a quotation, which means that its text was moved."""
        hits = await self.app.passages.search(quote, [corpus], 3) if quote else ()
        return bool(find_verbatim_passage(quote, [hit.passage for hit in hits]))

    async def _read(self, entries: tuple[LogEntry, ...]) -> _RecheckedTurn | None:
        """Return the turn of these entries if it may still be reported, otherwise None."""
        try:
            record = None if any(entry.erased for entry in entries) else read_turn_record(entries)
        except ValueError:
            return None
        if not record or record.retracted or await find_forgotten_documents(self.app.manifest, record.stated):
            return None
        return _RecheckedTurn(record, entries)

    async def _notify(self, since: datetime) -> None:
        entries, now = await self.app.audit.of_kind(EntryKind.RECHECK, since), self.clock()
        last = {entry.turn_id: entry for entry in entries if not entry.erased}
        untold = [turn_id for turn_id, entry in last.items() if "lost" in entry.body or entry.body.get("again")]
        done = [entry for entry in entries if entry.body.get("state", "done") == "done"]
        notices = [(entry.body.get("told"), now - entry.at) for entry in done if entry.at]
        most = self.app.settings.record.recheck_most
        if self.app.settings.record.recheck == "note":
            today = sum(how == "note" and ago < _DAY for how, ago in notices)
            for turn_id in untold[: max(most - today, 0)]:
                if turn := await self._load(turn_id):
                    await self._notify_at_answer(turn)
        elif untold and not any(how == "digest" and ago < _DIGEST_GAP for how, ago in notices):
            turns = [turn for turn_id in untold if (turn := await self._load(turn_id))]
            if turns:
                await self._notify_admins(turns, most)

    async def _load(self, turn_id: str) -> _RecheckedTurn | None:
        turn = await self._read(await self.app.audit.turn(turn_id))
        if not turn:
            await self._note(turn_id, "nobody", why="the answer was retracted, or cites a forgotten page")
        return turn

    async def _note(self, turn_id: str, told: str, **facts: object) -> None:
        await self.app.audit.append(LogEntry(turn_id, EntryKind.RECHECK, {"told": told, **facts}))

    async def _notify_admins(self, turns: Sequence[_RecheckedTurn], most: int) -> None:
        """Notify the admins' channel; log instead if none is set, or if the platform refuses.

        Turns that the channel may not read are only counted.
        """
        channel = self.app.settings.schedule.admin_channel
        name, _, rest = channel.partition(":")
        workspace, _, place = rest.partition("/")
        here = await find_searchable_corpora(self.app, Asker(name, "channel", workspace, place)) if channel else ()
        lines, why = list(_render_digest(turns, frozenset(here), most)), ""
        if channel and name not in self.platforms:
            return
        if channel:
            try:
                await self.platforms[name].call(Place(name, workspace, place), "\n".join(lines), people=())
            except PlatformUnavailable as error:
                log.warning(
                    "reporting answers that no longer hold to the admins failed, retrying", extra={"cause": str(error)}
                )
                return
            except PlatformError as error:
                why = str(error)
        if why or not channel:
            for line in lines:
                log.warning("%s", line, extra={"cause": why} if why else {})
        body = {"told": "digest", **({"why": why} if why else {})}
        await self.app.audit.append(*(LogEntry(turn.record.turn_id, EntryKind.RECHECK, body) for turn in turns))

    async def _notify_at_answer(self, turn: _RecheckedTurn) -> None:
        """Post a note beneath the answer. It is recorded before it is posted, so it is posted at most once."""
        record = turn.record
        row = await self.app.queue.get(record.ticket) if record.ticket else None
        platform = self.platforms.get(record.asker.platform)
        if not row or is_asker_only(question := decode_without_handle(row), turn.entries):
            await self._note(record.turn_id, "nobody", why="only the asker can see the answer")
            return
        if not platform or (await load_channel_settings(self.app, question.place.channel_id)).paused:
            return
        try:
            here = await find_searchable_corpora(self.app, await platform.asker(question))
            if not record.may_show_answer(here):
                await self._note(record.turn_id, "nobody", why="the pages it cites may no longer be read there")
                return
            text = _render_note(turn)
            await self._note(record.turn_id, "note", state="begun")
            posted = await _post(platform, build_note_question(question), text, record)
        except PlatformError as error:
            again = isinstance(error, PlatformUnavailable) and error.seconds is not None
            await self._note(record.turn_id, "note", state="failed", why=str(error), again=again)
        else:
            await self._note(record.turn_id, "note", state="done", messages=posted.messages, text=text)


async def _post(platform: Platform, question: Question, text: str, record: TurnRecord) -> PostedMessages:
    view = build_notice_view(record.ticket, record.language, text)
    posted = await platform.show(question, view, PostedMessages())
    return await platform.show(question, view, posted) if posted.begun else posted


def _render_note(turn: _RecheckedTurn) -> str:
    language = turn.record.language or "en"
    lines = [translate("recheck_heading", language, question=shorten_question(turn.record.question))]
    for sentence in turn.lost[:_MOST_SAID]:
        said, now = (shorten_line(sentence[name], _MOST_QUOTED) for name in ("text", "now"))
        what = "recheck_removed" if sentence["removed"] else "recheck_changed"
        lines.append(translate(what, language, said=said, title=sentence["title"]))
        lines += [translate("recheck_now", language, now=now)] if now else []
    return "\n".join(lines)


def _render_digest(turns: Sequence[_RecheckedTurn], here: frozenset[str], most: int) -> Iterator[str]:
    yield f"{format_count(len(turns), 'answer')} may no longer hold: the pages that they cite have changed."
    for turn in turns[:most]:
        record, lost = turn.record, turn.lost
        where = record.place.channel_id if record.place.channel else record.asker.platform
        day = f", {record.at:%Y-%m-%d}" if record.at else ""
        titles = sorted({f"“{page['title']}”" for page in lost if page["corpus"] in here})
        pages = ", ".join(titles or sorted({one["corpus"] for one in lost}))
        yield sanitize_line(f"• {record.turn_id}{day}, {where}: {format_count(len(lost), 'statement')} ({pages})")
    if len(turns) > most:
        yield f"And {len(turns) - most} more."
    yield "`footnote audit show ID` shows what changed."


@asynccontextmanager
async def keep_citations(recheck: CitationRecheck, *, pulse: float = LOOK_SECONDS) -> AsyncIterator[None]:
    """Recheck the citations of recent answers every `pulse` seconds within the block."""

    async def watch() -> None:
        while True:
            await recheck.look()
            await asyncio.sleep(pulse)

    async with run_beside(watch(), name="recheck"):
        yield
