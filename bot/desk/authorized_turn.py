"""Load a turn for a user who may see it, and read from its log entries what users did with the answer."""

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
from storage.record.comparisons import LEFT, RATED
from storage.types import DocumentId, EntryKind, LogEntry, QueuedQuestion

ACTION_BEGUN, ACTION_DONE, ACTION_FAILED = "begun", "done", "failed"
"""The states of an action that is done once and may fail: begun before it is tried, done or failed after."""


def build_action_entry(turn_id: str, what: str, by: Asker, **facts: object) -> LogEntry:
    """Return the entry of an action. `missed` is recorded as a negative rating with its reason, a number as `RATED`."""
    act: dict[str, object] = {"what": what}
    if what == "missed":
        act = {"what": "down", "missed": True}
    elif what.isdigit():
        act = {"what": RATED, "rating": int(what)} if int(what) else {"what": LEFT}
    return LogEntry(turn_id, EntryKind.FEEDBACK, {**act, "by": by.user_id, "where": by.channel_id, **facts})


def has_tried(entries: Iterable[LogEntry], what: str) -> bool:
    """Return whether an action was ever started, whatever its outcome."""
    return bool(_select_actions(entries, {what}))


def find_last_action(entries: Iterable[LogEntry], what: str) -> Mapping[str, Any]:
    """Return the last entry of an action that is done once; empty if it was never begun, or failed."""
    actions = _select_actions(entries, {what})
    return actions[-1] if actions and actions[-1].get("state") != ACTION_FAILED else {}


def find_opinion(entries: Iterable[LogEntry], by: Asker) -> Mapping[str, Any]:
    """Return a user's last rating of an answer, or that they left the comparison then; empty if there is none."""
    ratings = [body for body in _select_actions(entries, {"up", "down", RATED, LEFT}) if body.get("by") == by.user_id]
    return ratings[-1] if ratings else {}


def _select_actions(entries: Iterable[LogEntry], whats: Collection[str]) -> list[Mapping[str, Any]]:
    return [entry.body for entry in entries if entry.kind is EntryKind.FEEDBACK and entry.body.get("what") in whats]


class ActionDenied(Exception):
    """An action is refused. `words` are the reason for the user; they reveal nothing that the user may not see."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def deny_unseen(language: str) -> ActionDenied:
    """Return the refusal of a turn in the user's `language`; the question's language would reveal that it exists."""
    return ActionDenied(translate("not_here", language or "en"))


@dataclass(frozen=True, slots=True)
class AuthorizedTurn:
    """A question and its turn, loaded for a user who may see them."""

    row: QueuedQuestion
    question: Question
    entries: tuple[LogEntry, ...]
    record: TurnRecord
    by: Asker
    theirs: str  # the user's language; empty if unknown
    here: frozenset[str]  # the corpora that may be read in the user's place now
    gone: frozenset[DocumentId]  # those of its documents that are forgotten

    @property
    def language(self) -> str:
        return self.theirs or self.record.language or "en"

    @property
    def shows_evidence(self) -> bool:
        """Whether everything behind the turn may be shown to the user now."""
        return self.record.may_show_evidence(self.here, self.gone)

    @property
    def nothing(self) -> ActionDenied:
        """The refusal of anything that the user may not see: the same as for an unknown ticket."""
        return deny_unseen(self.theirs)

    def denied(self, occasion: str) -> ActionDenied:
        """Return the refusal of an action, with the reason."""
        return ActionDenied(translate(occasion, self.language))

    @property
    def result(self) -> TurnResult:
        """The turn's answer. Raises `ActionDenied` if there is none yet."""
        if not self.record.result:
            raise self.denied("acting_later")
        return self.record.result


async def authorize_turn(app: App, ticket: int, by: Asker, language: str) -> AuthorizedTurn:
    """Load a turn for a user.

    Raises `ActionDenied` if there is no turn yet, or if the user may not see it. In the second case, the words are the
    same as for an unknown ticket. A turn that was retracted or cites a forgotten page is denied to everyone. Also
    raises `StorageError`, and `ValueError` for an unknown format of the record.
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
    """Return a row's question without its `handle`, a secret that only answering needs."""
    return replace(decode_question(row), handle="")


def is_asker_only(question: Question, entries: tuple[LogEntry, ...]) -> bool:
    """Return whether only the asker sees the answer; a shared answer is visible to the channel."""
    return question.only_asker and not find_last_action(entries, "share")
