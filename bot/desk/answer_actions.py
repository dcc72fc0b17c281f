"""Run what people do with an answer: see its evidence and sources, rate it, share it, ask a person.

`AnswerActions` is the one face for platforms. A ticket is all that a button knows, so that it works after a restart
too. Everything is held to what may be read where somebody stands, at that moment.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

from bot.access import Asker
from bot.desk import authorized_turn
from bot.desk.authorized_turn import (
    ActionDenied,
    AuthorizedTurn,
    authorize_turn,
    decode_without_handle,
    find_forgotten_pages,
    find_readable_corpora,
    is_asker_only,
    is_same_channel,
    is_same_person,
    load_channel_settings,
    may_be_told,
    may_see_evidence,
)
from bot.desk.jobs.ports import log_event
from bot.desk.turn_record import TurnRecord, read_turn_record
from bot.desk.types import DeliveryOutcome, PostedMessages, Question
from bot.platform import Platform, PlatformError, PlatformUnavailable
from bot.views.answer_text import render_plain_text
from bot.views.catalog import translate
from bot.views.turn_view import EvidenceView, ShownSource, View
from bot.views.view_reducer import build_cited_source as source_of
from bot.views.view_reducer import build_evidence_view, finish_check_view, finish_view, start_view
from bot.wiring import App
from pipeline.types import Status
from storage.errors import StorageError
from storage.types import Citation, LogEntry, QueuedQuestion


async def load_evidence(app: App, seen: AuthorizedTurn) -> EvidenceView:
    """Return all that a turn checked and cites.

    Raises:
        Denied: Not all that it was made from may be read here now, or there is no answer yet.
        StorageError: It cannot be looked up.
    """
    if not may_see_evidence(seen.turn, seen.here):
        raise seen.nothing
    answered = seen.answered
    cited = {citation.passage_id for citation in answered.answer.citations}
    claims = answered.answer.claims
    wanted = {one for checked in claims for one in (*checked.evidence, *checked.looked_at)} - cited
    return build_evidence_view(answered, await app.manifest.join(wanted, seen.here), seen.turn.question, seen.language)


async def load_evidence_or_denial(looking: Awaitable[EvidenceView], heading: str) -> EvidenceView:
    """Return the evidence, or our words for why there is none."""
    try:
        return await looking
    except ActionDenied as denied:
        return EvidenceView(heading, "", text=denied.words)


MAX_QUESTIONS = 100
"""How many of a conversation's last questions are looked at."""


async def load_sources(app: App, conversation: str, by: Asker, language: str) -> EvidenceView:
    """Return the pages; our own words where there are none that may be seen, whatever keeps them away.

    Raises:
        StorageError: They cannot be looked up.
        ValueError: The record is not as any version wrote it.
    """
    here = await find_readable_corpora(app, by)
    rows = await app.queue.conversation(conversation, limit=MAX_QUESTIONS)
    told = [turn for row in rows if (turn := await _load_visible_turn(app, row, by))]
    cited = [one for turn in told for one in _list_citations(turn) if one.corpus in here]
    gone = await find_forgotten_pages(app, cited)
    shown = list_pages(one for one in cited if (one.corpus, one.document) not in gone)
    # In what language somebody asked is not told to whom nothing else is.
    spoken = language or (told[-1].language if shown else "") or "en"
    return EvidenceView(
        translate("sources_heading", spoken), "", (), shown, "" if shown else translate("sources_none", spoken)
    )


def list_pages(citations: Iterable[Citation]) -> tuple[ShownSource, ...]:
    """Return each page that is cited once, by its first citation, without its words; pure."""
    first: dict[tuple[str, str], Citation] = {}
    for citation in citations:
        first.setdefault((citation.corpus, citation.document), citation)
    return tuple(replace(source_of(one), number=place, quote="") for place, one in enumerate(first.values(), start=1))


async def _load_visible_turn(app: App, row: QueuedQuestion, by: Asker) -> TurnRecord | None:
    """Return the turn that answered a question; None where it was taken back, or was not for them to see."""
    entries = await app.audit.turn(row.turn_id) if row.turn_id else ()
    question, turn = decode_without_handle(row), read_turn_record(entries)
    if not turn or turn.retracted or row.outcome == DeliveryOutcome.RETRACTED:
        return None
    return turn if may_be_told(question.asker, by, alone=is_asker_only(question, entries)) else None


def _list_citations(turn: TurnRecord) -> tuple[Citation, ...]:
    return turn.answered.answer.citations if turn.answered else ()


MAX_COMMENT = 2_000
"""Characters of a comment that are kept."""


async def record_feedback(app: App, seen: AuthorizedTurn, what: Literal["up", "down"], comment: str = "") -> str:
    """Put somebody's opinion on record, and return our thanks. The same opinion again, with no new word, is known.

    Raises:
        Denied: There is no answer yet.
        StorageError: It could not be kept.
    """
    answer_id, comment = seen.answered.answer_id, comment.strip()
    known = authorized_turn.find_opinion(seen.entries, seen.by)
    kept = comment[:MAX_COMMENT]
    if (known.get("what"), known.get("comment")) != (what, kept) and (comment or known.get("what") != what):
        await app.audit.append(authorized_turn.build_action_entry(answer_id, what, seen.by, comment=kept))
    return translate("feedback_cut" if kept != comment else "feedback_noted", seen.language, most=MAX_COMMENT)


MAX_QUOTED_QUESTION = 300
"""Characters of the question that are repeated."""


async def ask_people(app: App, platform: Platform, seen: AuthorizedTurn) -> str:
    """Call the people of a question's channel to it, and return what whoever wanted that is told.

    It is on record before they are called, so that they are called once at most; a call that the platform refused may
    be tried again.

    Raises:
        Denied: Nobody is named there, they were asked before, or the platform refuses.
        StorageError: It could not be put on record; nobody was called.
    """
    turn_id, place, language = seen.turn.turn_id, seen.question.place, seen.turn.language or "en"
    people = (await load_channel_settings(app, place.channel_id)).ask
    if not people:
        raise seen.denied("ask_nobody")
    if authorized_turn.find_last_action(seen.entries, "ask"):
        raise seen.denied("ask_already")
    await app.audit.append(
        authorized_turn.build_action_entry(turn_id, "ask", seen.by, state=authorized_turn.ACTION_BEGUN, people=people)
    )
    try:
        text = translate("ask_call", language, question=shorten_question(seen.question.text))
        posted = await platform.call(place, text, tuple(map(_read_user_id, people)))
    except PlatformError as error:
        await app.audit.append(
            authorized_turn.build_action_entry(
                turn_id, "ask", seen.by, state=authorized_turn.ACTION_FAILED, reason=str(error)
            )
        )
        raise seen.denied("ask_failed") from error
    await app.audit.append(
        authorized_turn.build_action_entry(
            turn_id, "ask", seen.by, state=authorized_turn.ACTION_DONE, messages=posted.messages
        )
    )
    return translate("ask_done", seen.language)


def shorten_question(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTED_QUESTION else f"{line[:MAX_QUOTED_QUESTION]}…"


def _read_user_id(person: str) -> str:
    """Return the platform's own id of a person whom settings name, such as `U1` of `slack:T1/U1`."""
    return person.rpartition("/")[2]


async def share_answer(app: App, platform: Platform, seen: AuthorizedTurn) -> str:
    """Post an answer for everybody in its channel, and return what its asker is told.

    Raises:
        Denied: It is not theirs to share, was shared before or perhaps so, or the platform refuses.
        StorageError: It could not be put on record; if that was before it was posted, it was not.
    """
    _require_shareable(seen)
    question, asks = (
        build_shared_question(seen.question, seen.by),
        await load_channel_settings(app, seen.question.place.channel_id),
    )
    posted = await _find_earlier_share(platform, seen, question)
    view = build_shared_view(seen, ask=bool(asks.ask))
    await app.audit.append(
        authorized_turn.build_action_entry(seen.turn.turn_id, "share", seen.by, state=authorized_turn.ACTION_BEGUN)
    )
    try:
        posted = await platform.show(question, view, posted)
    except PlatformError as error:
        if not _may_be_posted(error):
            failed = authorized_turn.build_action_entry(
                seen.turn.turn_id, "share", seen.by, state=authorized_turn.ACTION_FAILED, reason=str(error)
            )
            await app.audit.append(failed)
        raise seen.denied("share_failed") from error
    facts = {"state": authorized_turn.ACTION_DONE, "messages": posted.messages, "text": render_plain_text(view)}
    await app.audit.append(authorized_turn.build_action_entry(seen.turn.turn_id, "share", seen.by, **facts))
    return translate("share_done", seen.language)


async def remove_shared_answer(platform: Platform, question: Question, entries: Sequence[LogEntry]) -> tuple[str, ...]:
    """Remove what sharing a question's answer posted, and return the messages' ids; for who takes the answer back.

    Raises:
        PlatformError: The platform refuses, or is away.
    """
    posts, post = authorized_turn.find_last_action(entries, "share"), build_shared_question(question, question.asker)
    messages = tuple(map(str, posts.get("messages", ())))
    if posts and not messages and platform.ways(post).reads_back:
        messages = (await platform.find(post)).messages
    if messages:
        await platform.remove(post, PostedMessages(messages))
    return messages


def build_shared_question(question: Question, by: Asker) -> Question:
    """Return the question as it stands in the channel when its answer is shared: whoever is there may see that."""
    return replace(question, key=f"{question.key}#shared", asker=by, only_asker=False, unasked=False, handle="")


def build_shared_view(seen: AuthorizedTurn, *, ask: bool) -> View:
    """Return what everybody is shown. What it counts is left out where not all that was counted is readable now."""
    start = start_view(seen.row.ticket, seen.turn.language)
    whole = finish_check_view if seen.turn.task == "check" else finish_view
    view = whole(start, seen.answered, ask=ask)
    return view if may_see_evidence(seen.turn, seen.here) else replace(view, collapsed="", left_out="")


def _require_shareable(seen: AuthorizedTurn) -> None:
    if not (seen.question.only_asker and is_same_person(seen.question.asker, seen.by)):
        raise seen.denied("share_public")
    # Only to whom stands in the channel itself is it known what may be read there now.
    if not is_same_channel(seen.question.asker, seen.by):
        raise seen.nothing
    if seen.answered.answer.status is not Status.ANSWERED:
        raise seen.denied("share_empty")


async def _find_earlier_share(platform: Platform, seen: AuthorizedTurn, question: Question) -> PostedMessages:
    """Return what an earlier attempt left. Raises `Denied` where it was shared, or nobody can tell."""
    before = authorized_turn.find_last_action(seen.entries, "share")
    if before.get("state") == authorized_turn.ACTION_DONE:
        raise seen.denied("share_already")
    if before and not platform.ways(question).reads_back:
        raise seen.denied("share_uncertain")
    if not (authorized_turn.has_tried(seen.entries, "share") and platform.ways(question).reads_back):
        return PostedMessages()
    try:
        return await platform.find(question)
    except PlatformError as error:
        raise seen.denied("share_failed") from error


def _may_be_posted(error: PlatformError) -> bool:
    """Return whether it may stand there all the same: nobody answered. Who asks us to wait has posted nothing."""
    return isinstance(error, PlatformUnavailable) and error.seconds is None


class AnswerActions:
    """Acts for people. Every method raises `Denied`, whose words are for whoever pressed, and nothing else.

    `language` is theirs, where the platform knows it; without it they are answered in the question's, and refused in
    English, so that a refusal does not tell whether there is a question.
    """

    def __init__(self, app: App, platforms: Mapping[str, Platform]) -> None:
        """Take the opened app, and the platforms by name."""
        self._app, self._platforms = app, platforms
        self._busy: set[int] = set()

    async def evidence(self, ticket: int, by: Asker, *, language: str = "") -> EvidenceView:
        """Show what a turn checked, and the passages it stands on."""
        async with self._looking(language):
            return await load_evidence(self._app, await authorize_turn(self._app, ticket, by, language))

    async def sources(self, conversation: str, by: Asker, *, language: str = "") -> EvidenceView:
        """Show all pages that a conversation's answers cite."""
        async with self._looking(language):
            return await load_sources(self._app, conversation, by, language)

    async def feedback(
        self, ticket: int, by: Asker, what: Literal["up", "down"], comment: str = "", *, language: str = ""
    ) -> str:
        """Note what somebody thinks of an answer."""
        async with self._acting(ticket, by, language) as found:
            return await record_feedback(self._app, found, what, comment)

    async def ask_person(self, ticket: int, by: Asker, *, language: str = "") -> str:
        """Call the people whom the channel's settings name to a question."""
        async with self._once(ticket, by, language) as found:
            return await ask_people(self._app, self._platform(found), found)

    async def share(self, ticket: int, by: Asker, *, language: str = "") -> str:
        """Show the channel an answer that the asker alone was shown."""
        async with self._once(ticket, by, language) as found:
            return await share_answer(self._app, self._platform(found), found)

    def _platform(self, found: AuthorizedTurn) -> Platform:
        """Return where a question stands; whoever acts may be elsewhere, such as at the terminal."""
        if platform := self._platforms.get(found.question.place.platform):
            return platform
        raise found.denied("acting_unavailable")

    @asynccontextmanager
    async def _once(self, ticket: int, by: Asker, language: str) -> AsyncIterator[AuthorizedTurn]:
        """Look a turn up for what is done once: whoever presses twice does not start it twice."""
        async with self._acting(ticket, by, language) as found:
            pass  # Who may not see it is told that first.
        if ticket in self._busy:
            raise found.denied("acting_busy")
        self._busy.add(ticket)
        try:
            # What was done meanwhile counts.
            async with self._acting(ticket, by, language) as found:
                yield found
        finally:
            self._busy.discard(ticket)

    @asynccontextmanager
    async def _acting(self, ticket: int, by: Asker, language: str) -> AsyncIterator[AuthorizedTurn]:
        async with self._looking(language):
            found = await authorize_turn(self._app, ticket, by, language)
        try:
            yield found
        except StorageError as error:
            log_event(logging.ERROR, "an act could not be recorded", found.question, error)
            raise found.denied("acting_unrecorded") from error

    @asynccontextmanager
    async def _looking(self, language: str) -> AsyncIterator[None]:
        try:
            yield
        except (StorageError, ValueError) as error:
            log_event(logging.ERROR, "a turn could not be looked up", error=error)
            raise ActionDenied(translate("acting_unavailable", language or "en")) from error
