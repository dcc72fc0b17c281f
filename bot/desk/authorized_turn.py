"""Decide who may see a turn again, and load it for them.

A ticket is a number that anybody can guess. To whoever may not see its turn there is nothing: they are told the same
as of a ticket that was never given out. What people did with an answer is read from the log here too.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.access import Asker, find_forgotten_documents, may_view_turn
from bot.answering.turn_record import TurnRecord, read_turn_record
from bot.app import App
from bot.desk.channel_settings import find_searchable_corpora
from bot.desk.jobs.job import decode_question
from bot.types import DeliveryOutcome, Question, TurnResult
from bot.views.catalog import translate
from storage.types import DocumentId, EntryKind, LogEntry, QueuedQuestion

ACTION_BEGUN, ACTION_DONE, ACTION_FAILED = "begun", "done", "failed"
"""The state of what is done once and may fail: begun before it is tried, done or failed after."""


def build_action_entry(turn_id: str, what: str, by: Asker, **facts: object) -> LogEntry:
    body = {"what": what, "by": by.user_id, "where": by.channel_id, **facts}
    return LogEntry(turn_id, EntryKind.FEEDBACK, body)


def has_tried(entries: Iterable[LogEntry], what: str) -> bool:
    """Return whether an action was ever begun, however it ended."""
    return bool(_select_actions(entries, {what}))


def find_last_action(entries: Iterable[LogEntry], what: str) -> Mapping[str, Any]:
    """Return the last entry of an action that is done once; empty where it never was, or failed."""
    found = _select_actions(entries, {what})
    return found[-1] if found and found[-1].get("state") != ACTION_FAILED else {}


def find_opinion(entries: Iterable[LogEntry], by: Asker) -> Mapping[str, Any]:
    """Return the last entry of what somebody thought of an answer; empty where there is none."""
    found = [body for body in _select_actions(entries, {"up", "down"}) if body.get("by") == by.user_id]
    return found[-1] if found else {}


def _select_actions(entries: Iterable[LogEntry], whats: Collection[str]) -> list[Mapping[str, Any]]:
    return [entry.body for entry in entries if entry.kind is EntryKind.FEEDBACK and entry.body.get("what") in whats]


class ActionDenied(Exception):
    """An action is not done. `words` tell whoever wanted it so, and nothing of what they may not see."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def deny_unseen(language: str) -> ActionDenied:
    """Return what is said where there is nothing to see, for whatever reason.

    `language` is that of whoever looks. It must not be the question's: that would tell that there is one.
    """
    return ActionDenied(translate("not_here", language or "en"))


@dataclass(frozen=True, slots=True)
class AuthorizedTurn:
    """A question, its turn, and who looks at it."""

    row: QueuedQuestion
    question: Question
    entries: tuple[LogEntry, ...]
    record: TurnRecord
    by: Asker
    theirs: str  # the language of whoever looks; empty where it is not known
    here: frozenset[str]  # the corpora that may be read where `by` stands, now
    gone: frozenset[DocumentId]  # of what it was made from, what was forgotten since

    @property
    def language(self) -> str:
        return self.theirs or self.record.language or "en"

    @property
    def shows_evidence(self) -> bool:
        """Whether all that it was made from may be seen there now."""
        return self.record.may_show_evidence(self.here, self.gone)

    @property
    def nothing(self) -> ActionDenied:
        """The denial of what they may not see: the same as of a ticket that does not exist."""
        return deny_unseen(self.theirs)

    def denied(self, occasion: str) -> ActionDenied:
        """Return the denial of an action to somebody who may see the answer, and so be told why."""
        return ActionDenied(translate(occasion, self.language))

    @property
    def result(self) -> TurnResult:
        """The answer. Raises `ActionDenied` until there is one."""
        if not self.record.result:
            raise self.denied("acting_later")
        return self.record.result


async def authorize_turn(app: App, ticket: int, by: Asker, language: str) -> AuthorizedTurn:
    """Look up a turn for somebody.

    Raises:
        ActionDenied: There is no such ticket, or they may not see its answer, or it cites a page that was forgotten:
            in the same words.
        StorageError: It cannot be looked up.
        ValueError: The record is not as any version wrote it.
    """
    here = await find_searchable_corpora(app, by)
    row = await app.queue.get(ticket)
    if by.exclusion or not row or row.outcome == DeliveryOutcome.RETRACTED:
        raise deny_unseen(language)
    entries = await app.audit.turn(row.turn_id) if row.turn_id else ()
    question, record = decode_without_handle(row), read_turn_record(entries)
    if not may_view_turn(question.asker, by, alone=is_asker_only(question, entries)):
        raise deny_unseen(language)
    if not record:
        raise ActionDenied(translate("acting_later", language or "en"))
    gone = await find_forgotten_documents(app.manifest, record.documents)
    if not record.may_show_answer(here, gone):
        raise deny_unseen(language)
    return AuthorizedTurn(row, question, entries, record, by, language, here, gone)


def decode_without_handle(row: QueuedQuestion) -> Question:
    """Return a question without its secret, which only the desk needs to answer it."""
    return replace(decode_question(row), handle="")


def is_asker_only(question: Question, entries: tuple[LogEntry, ...]) -> bool:
    """Return whether an answer is shown to the asker alone; one that they shared is the channel's."""
    return question.only_asker and not find_last_action(entries, "share")
