"""Recall the conversation before a question, as far as the asker may read it here and now.

Our log has the questions and answers; the platform adds other people's messages in between. A turn is left out with its
question if any of its sources cannot be read any more, even if the platform still returns its messages.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter

from bot.access import is_same_person, list_corpora
from bot.answering.turn_record import TurnRecord, read_turn_record
from bot.app import App
from bot.desk.authorized_turn import find_last_action, is_asker_only
from bot.desk.channel_settings import find_searchable_corpora
from bot.desk.jobs.job import decode_question
from bot.desk.platform_port import Platform, PlatformError
from bot.types import MAX_EARLIER_TURNS, ConversationMessage, DeliveryOutcome, Question, log_event
from pipeline.kit import Limits
from pipeline.types import Status, Turn
from storage.language.detection import detect_language
from storage.types import QueuedQuestion

HISTORY_SECONDS = 5.0  # how long the platform may take to return a conversation; the answer waits for it
_MAX_TURN_CHARACTERS = Limits().question_characters
_WITHDRAWN = frozenset({DeliveryOutcome.STOPPED, DeliveryOutcome.RETRACTED})
_NEVER_SHOWN = frozenset({DeliveryOutcome.SILENT, DeliveryOutcome.UNDELIVERABLE})


@dataclass(frozen=True, slots=True)
class Exchange:
    """The remembered turns of a recorded question and its answer, and the messages that show them."""

    at: datetime
    turns: tuple[Turn, ...]
    messages: frozenset[str]


async def recall_conversation(
    app: App, platform: Platform, question: Question, row: QueuedQuestion, *, patience: float = HISTORY_SECONDS
) -> tuple[Turn, ...]:
    """Return the turns before a question in its conversation, oldest first. Raises `StorageError`.

    If the platform does not return the conversation within `patience` seconds, only the log is used.
    """
    limit = max(app.settings.limits.turns, MAX_EARLIER_TURNS)
    scope = await find_searchable_corpora(app, question.asker)
    rows = await app.queue.conversation(question.conversation, before=row.ticket, limit=limit)
    own = [await _load_exchange(app, earlier, question, scope) for earlier in rows]
    messages = await _fetch_history(platform, question, limit, patience)
    known = {question.message}.union(*(exchange.messages for exchange in own))
    unknown = [message for message in messages if message.message not in known and message.at <= question.at]
    others = await _drop_own_messages(app, unknown, question, scope)
    return merge_exchanges(own, others, scope)[-limit:]


def merge_exchanges(
    own: Iterable[Exchange], messages: Iterable[ConversationMessage], scope: Collection[str] = ()
) -> tuple[Turn, ...]:
    """Return exchanges and messages in order of time, each answer directly after its question; pure.

    Our own messages that are not in the log count as based on every corpus of the `scope`.
    """
    dated = [(exchange.at, exchange.turns) for exchange in own]
    dated += [(message.at, (_build_turn(message, scope),)) for message in messages if message.text.strip()]
    return tuple(turn for _, turns in sorted(dated, key=itemgetter(0)) for turn in turns)


def select_turns(
    earlier: Question, outcome: str, turn: TurnRecord | None, by: Question, scope: Collection[str]
) -> tuple[Turn, ...]:
    """Return the remembered turns of an earlier question, which ended with `outcome`, and of its answer; pure.

    Retracted turns, turns that only another asker saw, and turns with unreadable sources are not remembered. If no
    answer was shown, only the question is remembered. `turn` is None if it never ran; `by` is the question asked now,
    `scope` has the corpora that can be read in its place.
    """
    if outcome in _WITHDRAWN or (turn and (turn.retracted or not turn.corpora <= set(scope))):
        return ()
    if earlier.only_asker and not is_same_person(earlier.asker, by.asker):
        return ()
    asked = _build_user_turn(earlier.text, earlier.at)
    result = turn.result if turn else None
    if not turn or not result or result.failure or outcome in _NEVER_SHOWN or result.answer.status is Status.CANCELLED:
        return (asked,)
    corpora, documents = tuple(sorted(turn.corpora)), tuple(sorted(turn.documents))
    said = Turn("bot", result.text, turn.at, turn.language, result.cited_titles, corpora, documents, result.query)
    return asked, said


async def _load_exchange(app: App, earlier: QueuedQuestion, by: Question, scope: Collection[str]) -> Exchange:
    """Return the exchange of a row, without turns if the row or its turn cannot be read."""
    messages = frozenset({earlier.message, *earlier.posted})
    try:
        entries = await app.audit.turn(earlier.turn_id) if earlier.turn_id else ()
        turn, question = read_turn_record(entries), decode_question(earlier)
        # A shared answer is visible to everyone, and its post is ours like any other.
        question = replace(question, only_asker=is_asker_only(question, entries))
        messages |= frozenset(map(str, find_last_action(entries, "share").get("messages", ())))
    except ValueError as error:
        log_event(logging.WARNING, "cannot read an earlier turn", by, error, ticket=earlier.ticket)
        return Exchange(earlier.taken_at, (), messages)
    shown = messages.union(turn.delivered) if turn else messages
    turns = select_turns(question, earlier.outcome, turn, by, scope)
    return Exchange(question.at, turns, shown)


async def _fetch_history(
    platform: Platform, question: Question, limit: int, patience: float
) -> Sequence[ConversationMessage]:
    try:
        async with asyncio.timeout(patience):
            return await platform.heard(question, limit)
    except (PlatformError, TimeoutError) as error:
        log_event(logging.WARNING, "cannot fetch the conversation from the platform", question, error)
        return ()


async def _drop_own_messages(
    app: App, messages: Sequence[ConversationMessage], question: Question, scope: Collection[str]
) -> tuple[ConversationMessage, ...]:
    """Return the messages without our own: our answers are remembered from the log or not at all.

    Our messages that the log lacks have unknown sources, so they are returned only if every existing corpus is readable
    here.
    """
    if all(message.user for message in messages):
        return tuple(messages)
    all_readable = {corpus.name for corpus in await list_corpora(app.settings, app.manifest)} <= set(scope)
    channel = question.place.channel_id
    remembered = [
        message
        for message in messages
        if message.user or (all_readable and not await app.queue.by_message(channel, message.message))
    ]
    return tuple(remembered)


def _build_turn(message: ConversationMessage, scope: Collection[str]) -> Turn:
    if message.user:
        return _build_user_turn(message.text, message.at)
    corpora = tuple(sorted(scope))
    unknown = tuple((corpus, "") for corpus in corpora)
    return Turn("bot", message.text[:_MAX_TURN_CHARACTERS], message.at, corpora=corpora, documents=unknown)


def _build_user_turn(text: str, at: datetime) -> Turn:
    return Turn("user", text[:_MAX_TURN_CHARACTERS], at, detect_language(text[:2_000]))
