"""Run the actions on an answer: show its evidence and sources, rate it, share it, ask a person.

`AnswerActions` is the interface for platforms. A button holds only a ticket number, so it still works after a restart.
Every action shows only what may be read in the user's place at that moment.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Literal

from bot.access import Asker, find_forgotten_documents, is_admin, is_same_channel, is_same_person, may_view_turn
from bot.answering.example_pool import UnfitExample, approve_turn, build_demo
from bot.answering.turn_record import TurnRecord, read_kept_passages, read_turn_record
from bot.app import App
from bot.desk.authorized_turn import (
    ACTION_BEGUN,
    ACTION_DONE,
    ACTION_FAILED,
    ActionDenied,
    AuthorizedTurn,
    authorize_turn,
    build_action_entry,
    decode_without_handle,
    find_last_action,
    find_opinion,
    has_tried,
    is_asker_only,
)
from bot.desk.channel_settings import find_searchable_corpora, load_channel_settings
from bot.desk.platform_port import ContentRefused, Platform, PlatformError, PlatformUnavailable
from bot.types import DeliveryOutcome, PostedMessages, Question, log_event
from bot.views.catalog import translate
from bot.views.message_layout import render_plain_text
from bot.views.turn_story import list_passages
from bot.views.turn_view import EvidenceView, ShownSource, View
from bot.views.view_reducer import (
    build_cited_source,
    build_evidence_view,
    finish_check_view,
    finish_view,
    shorten_line,
    shorten_question,
    simplify_view,
    start_view,
)
from pipeline.types import Status
from storage.errors import StorageError
from storage.types import Citation, EntryKind, LogEntry, QueuedQuestion

MAX_COMMENT = 2_000  # characters of a comment that are stored
MAX_NAME = 80
_ROOT_SHOWN = 16  # characters of a checkpoint's root in a receipt
Opinion = Literal["up", "down", "missed", "0", "1", "2", "3", "4", "5"]
"""A rating. `missed` is a negative one: this is not what the user asked; "0" asks to be left out of comparisons."""
_MAX_QUESTIONS = 100  # last questions of a conversation whose sources are listed


class AnswerActions:
    """What users can do with an answer. Every method raises only `ActionDenied`, whose text is shown to the user.

    `language` is the user's, if the platform knows it. Otherwise replies are in the question's language, and refusals
    in English, so that a refusal does not reveal whether the question exists.
    """

    def __init__(self, app: App, platforms: Mapping[str, Platform]) -> None:
        self._app, self._platforms = app, platforms
        self._busy: set[int] = set()

    async def evidence(self, ticket: int, by: Asker, *, language: str = "") -> EvidenceView:
        """Return a turn's checked claims and their passages; denied unless everything behind the turn is readable."""
        async with self._deny_outage(language):
            turn = await authorize_turn(self._app, ticket, by, language)
            if not turn.shows_evidence:
                raise turn.nothing
            answer = turn.result.answer
            cited = {citation.passage_id for citation in answer.citations}
            named = {passage for checked in answer.claims for passage in (*checked.evidence, *checked.looked_at)}
            recorded = {key: row for key, row in read_kept_passages(turn.entries).items() if key in named - cited}
            documents = [document for document in list_passages(turn.entries)[1] if document[0] in turn.here]
            passages = {**recorded, **await self._app.manifest.recall(named - cited, documents)}
            view = build_evidence_view(turn.result, passages, turn.record.question, turn.language)
            return replace(view, receipt=await self._render_receipt(turn))

    async def sources(self, conversation: str, by: Asker, *, language: str = "") -> EvidenceView:
        """Return the readable pages that the conversation's answers cite.

        If there are none, the view has only a text, which does not reveal why.
        """
        async with self._deny_outage(language):
            here = await find_searchable_corpora(self._app, by)
            rows = await self._app.queue.conversation(conversation, limit=_MAX_QUESTIONS)
            turns = [turn for row in rows if (turn := await self._load_visible_turn(row, by))]
            results = [turn.result for turn in turns if turn.result]
            cited = [citation for result in results for citation in result.answer.citations if citation.corpus in here]
            documents = {(citation.corpus, citation.document) for citation in cited}
            gone = await find_forgotten_documents(self._app.manifest, documents)
            shown = [citation for citation in cited if (citation.corpus, citation.document) not in gone]
            # The question's language is not revealed to users who see nothing else of it.
            language = language or (turns[-1].language if shown else "") or "en"
            pages = _list_pages(shown, language)
            text = "" if pages else translate("sources_none", language)
            return EvidenceView(translate("sources_heading", language), "", (), pages, text)

    async def feedback(self, ticket: int, by: Asker, what: Opinion, comment: str = "", *, language: str = "") -> str:
        """Record a user's rating of an answer, and return a sentence of thanks. A repeated rating is not recorded."""
        async with self._act(ticket, by, language) as turn:
            if turn.record.result is None:
                raise turn.denied("acting_later")
            if what == "0":
                await self._record(turn, what)
                return translate("study_left", turn.language)
            if what.isdigit() and not (await load_channel_settings(self._app, turn.question.place.channel_id)).study:
                raise turn.denied("study_over")
            comment = comment.strip()
            stored, known = comment[:MAX_COMMENT], find_opinion(turn.entries, by)
            before = "missed" if known.get("missed") else str(known.get("rating") or known.get("what"))
            if (before, known.get("comment")) != (what, stored) and (comment or before != what):
                await self._record(turn, what, comment=stored)
            return translate("feedback_cut" if stored != comment else "feedback_noted", turn.language, most=MAX_COMMENT)

    async def offers_example(self, ticket: int, by: Asker) -> bool:
        """Return whether this user is an admin and the answer could become a new example."""
        if not is_admin(self._app.settings, by):
            return False
        async with self._act(ticket, by, "") as turn:
            try:
                build_demo(turn.entries)
            except UnfitExample:
                return False
            return turn.record.turn_id not in {example.turn_id for example in await self._app.examples.all()}

    async def approve(self, ticket: int, by: Asker, *, language: str = "") -> str:
        """Store an answer as a worked example, and return the reply to the admin."""
        async with self._act(ticket, by, language) as turn:
            if not is_admin(self._app.settings, by):
                raise turn.denied("example_admins")
            find_forgotten = partial(find_forgotten_documents, self._app.manifest)
            try:
                new = await approve_turn(
                    turn.entries, self._app.examples, by.user_id, find_forgotten, where=by.channel_id
                )
            except UnfitExample as unfit:
                raise turn.denied("example_unfit") from unfit
            return translate("example_done" if new else "example_known", turn.language)

    async def ask_person(self, ticket: int, by: Asker, *, language: str = "") -> str:
        """Post a message that mentions the channel's contact people about a question; return the reply to the user.

        The attempt is recorded first, so that they are mentioned at most once; the user may try again after a refusal
        by the platform. No other person is ever mentioned.
        """
        async with self._act_once(ticket, by, language) as turn:
            platform, place = self._find_platform(turn), turn.question.place
            people = (await load_channel_settings(self._app, place.channel_id)).ask
            if not people:
                raise turn.denied("ask_nobody")
            if find_last_action(turn.entries, "ask"):
                raise turn.denied("ask_already")
            await self._record(turn, "ask", state=ACTION_BEGUN, people=people)
            text = translate("ask_call", turn.record.language or "en", question=shorten_question(turn.question.text))
            try:
                # Settings name a person `slack:T1/U1`, the platform `U1`.
                posted = await platform.call(place, text, tuple(person.rpartition("/")[2] for person in people))
            except PlatformError as error:
                await self._record(turn, "ask", state=ACTION_FAILED, reason=str(error))
                raise turn.denied("ask_failed") from error
            await self._record(turn, "ask", state=ACTION_DONE, messages=posted.messages)
            return translate("ask_done", turn.language)

    async def share(self, ticket: int, by: Asker, *, language: str = "", name: str = "") -> str:
        """Post to the channel, once, an answer that only the asker saw; return the reply to the asker.

        The post begins with the question and the asker's `name` on the platform. The channel's rights are checked
        again. The post has its own key by which the platform finds it, so that pressing again after a crash completes
        the post and does not repeat it.
        """
        async with self._act_once(ticket, by, language) as turn:
            platform = self._find_platform(turn)
            _require_shareable(turn)
            question = _build_shared_question(turn.question, by)
            channel = await load_channel_settings(self._app, turn.question.place.channel_id)
            posted = await _find_earlier_share(platform, turn, question)
            view = _build_shared_view(turn, name, ask=bool(channel.ask))
            await self._record(turn, "share", state=ACTION_BEGUN)
            try:
                try:
                    posted = await platform.show(question, view, posted)
                except ContentRefused:
                    view = simplify_view(view)[0]
                    posted = await platform.show(question, view, posted)
            except PlatformError as error:
                # Without a reply it may have been posted. A platform that asks us to wait has posted nothing.
                if not (isinstance(error, PlatformUnavailable) and error.seconds is None):
                    await self._record(turn, "share", state=ACTION_FAILED, reason=str(error))
                raise turn.denied("share_failed") from error
            facts = {"messages": posted.messages, "text": render_plain_text(view)}
            await self._record(turn, "share", state=ACTION_DONE, **facts)
            return translate("share_done", turn.language)

    async def _render_receipt(self, turn: AuthorizedTurn) -> str:
        turn_id = turn.record.turn_id
        position = await self._app.find_position(turn_id)
        if not position:
            return ""
        facts = {"id": turn_id, "number": position.number, "size": position.size, "root": position.root[:_ROOT_SHOWN]}
        return translate("receipt" if position.size else "receipt_unsigned", turn.language, **facts)

    def _find_platform(self, turn: AuthorizedTurn) -> Platform:
        """Return the platform of the question; the user may be elsewhere, such as at the terminal."""
        if platform := self._platforms.get(turn.question.place.platform):
            return platform
        raise turn.denied("acting_unavailable")

    async def _record(self, turn: AuthorizedTurn, what: str, **facts: object) -> None:
        await self._app.audit.append(build_action_entry(turn.record.turn_id, what, turn.by, **facts))

    async def _load_visible_turn(self, row: QueuedQuestion, by: Asker) -> TurnRecord | None:
        """Return the turn that answered a question; None if it was retracted, or this user may not see it."""
        entries = await self._app.audit.turn(row.turn_id) if row.turn_id else ()
        question, record = decode_without_handle(row), read_turn_record(entries)
        if not record or record.retracted or row.outcome == DeliveryOutcome.RETRACTED:
            return None
        return record if may_view_turn(question.asker, by, alone=is_asker_only(question, entries)) else None

    @asynccontextmanager
    async def _act_once(self, ticket: int, by: Asker, language: str) -> AsyncIterator[AuthorizedTurn]:
        """Load a turn for an action that is done at most once; deny a second such action while the first runs."""
        async with self._act(ticket, by, language) as turn:
            pass  # a user who may not see the turn is refused first
        if ticket in self._busy:
            raise turn.denied("acting_busy")
        self._busy.add(ticket)
        try:
            # Loaded again: another process may have done it since.
            async with self._act(ticket, by, language) as turn:
                yield turn
        finally:
            self._busy.discard(ticket)

    @asynccontextmanager
    async def _act(self, ticket: int, by: Asker, language: str) -> AsyncIterator[AuthorizedTurn]:
        async with self._deny_outage(language):
            turn = await authorize_turn(self._app, ticket, by, language)
        try:
            yield turn
        except StorageError as error:
            log_event(logging.ERROR, "cannot record an action", turn.question, error)
            raise turn.denied("acting_unrecorded") from error

    @asynccontextmanager
    async def _deny_outage(self, language: str) -> AsyncIterator[None]:
        try:
            yield
        except (StorageError, ValueError) as error:
            log_event(logging.ERROR, "cannot look up a turn", error=error)
            raise ActionDenied(translate("acting_unavailable", language or "en")) from error


async def load_evidence_or_denial(evidence: Awaitable[EvidenceView], heading: str) -> EvidenceView:
    """Return the evidence, or a view with the reason why it is denied."""
    try:
        return await evidence
    except ActionDenied as denied:
        return EvidenceView(heading, "", text=denied.words)


async def remove_shared_answer(platform: Platform, question: Question, entries: Sequence[LogEntry]) -> tuple[str, ...]:
    """Delete the posts by which an answer was shared, and return their ids. Raises `PlatformError`."""
    action, shared = find_last_action(entries, "share"), _build_shared_question(question, question.asker)
    messages = tuple(map(str, action.get("messages", ())))
    if action and not messages and platform.ways(shared).reads_back:
        messages = (await platform.find(shared)).messages
    if messages:
        await platform.remove(shared, PostedMessages(messages))
    return messages


def build_note_question(question: Question) -> Question:
    """Return a variant of the question, to which the note "this answer no longer holds" is posted as an answer."""
    return replace(question, key=f"{question.key}#recheck", only_asker=False, unasked=False, handle="")


async def remove_notes(
    platform: Platform, question: Question, entries: Sequence[LogEntry], named: Sequence[str] = ()
) -> tuple[str, ...]:
    """Delete the notes which say that an answer no longer holds; return their ids. Raises `PlatformError`.

    `named` are the ids of further notes, whose record entries were erased.
    """
    bodies = [entry.body for entry in entries if entry.kind is EntryKind.RECHECK]
    noted = [str(message) for body in bodies for message in body.get("messages", ())]
    messages = tuple(dict.fromkeys((*noted, *named)))
    if messages:
        await platform.remove(build_note_question(question), PostedMessages(messages))
    return messages


def _list_pages(citations: Iterable[Citation], language: str) -> tuple[ShownSource, ...]:
    """Return each cited page once, by its first citation, renumbered and without quotation."""
    first: dict[tuple[str, str], Citation] = {}
    for citation in citations:
        first.setdefault((citation.corpus, citation.document), citation)
    sources = (build_cited_source(citation, language) for citation in first.values())
    return tuple(replace(source, number=number, quote="") for number, source in enumerate(sources, start=1))


def _build_shared_question(question: Question, by: Asker) -> Question:
    """Return the question as it is when its answer is shared: in the channel, visible to everyone there."""
    return replace(question, key=f"{question.key}#shared", asker=by, only_asker=False, unasked=False, handle="")


def _build_shared_view(turn: AuthorizedTurn, name: str, *, ask: bool) -> View:
    """Return the view of a shared answer; counts of claims are left out unless all their passages are readable."""
    checks, language = turn.record.task == "check", turn.record.language
    who = shorten_line(name, MAX_NAME) or translate("share_somebody", language)
    asked = {"name": who, "question": shorten_question(turn.question.text)}
    notice = translate("share_check" if checks else "share_answer", language, **asked)
    finish = finish_check_view if checks else finish_view
    view = finish(start_view(turn.row.ticket, language, notice=notice), turn.result, ask=ask)
    return view if turn.shows_evidence else replace(view, collapsed="", left_out="")


def _require_shareable(turn: AuthorizedTurn) -> None:
    asker = turn.question.asker
    if not (turn.question.only_asker and is_same_person(asker, turn.by)):
        raise turn.denied("share_public")
    # What may be read in the channel now is known only for a user who is in it.
    if not is_same_channel(asker, turn.by):
        raise turn.nothing
    if turn.result.answer.status is not Status.ANSWERED:
        raise turn.denied("share_empty")


async def _find_earlier_share(platform: Platform, turn: AuthorizedTurn, question: Question) -> PostedMessages:
    """Return the posts of an earlier attempt to share.

    Raises `ActionDenied` if the answer was, or may have been, shared.
    """
    before, reads_back = find_last_action(turn.entries, "share"), platform.ways(question).reads_back
    if before.get("state") == ACTION_DONE:
        raise turn.denied("share_already")
    if before and not reads_back:
        raise turn.denied("share_uncertain")
    if not (has_tried(turn.entries, "share") and reads_back):
        return PostedMessages()
    try:
        return await platform.find(question)
    except PlatformError as error:
        raise turn.denied("share_failed") from error
