"""The conversation before a question, as far as whoever asks may know it here and now.

Our own log says what was asked and answered; the platform adds what other people said in between. A turn of which
anything cannot be read any more is left out whole, the question too, and also where the platform would hand it over.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.app import App
from bot.chat import REMEMBERED, cited_titles
from bot.desk import acts
from bot.desk.keeping import question_of
from bot.desk.permitted import same_person
from bot.desk.reading_here import readable_here
from bot.desk.recalling import Recalled, recalled
from bot.desk.reporting import report
from bot.desk.seen import only_asker
from bot.desk.types import Heard, Outcome, Question
from bot.platform import Platform, PlatformError
from pipeline.kit import Limits
from pipeline.types import Status, Turn
from storage.language.detect import detect
from storage.types import QueuedQuestion

HEARING_SECONDS = 5.0
"""How long the platform may take to hand a conversation over; the answer waits for it."""
_LONGEST = Limits().question_characters
_TAKEN_BACK = frozenset({Outcome.STOPPED, Outcome.RETRACTED})
_UNSEEN = frozenset({Outcome.SILENT, Outcome.UNDELIVERABLE})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of the log and its answer, or what is left of them, and the messages that show them."""

    at: datetime
    turns: tuple[Turn, ...]
    messages: frozenset[str]


async def remembered(
    app: App, platform: Platform, question: Question, row: QueuedQuestion, *, patience: float = HEARING_SECONDS
) -> tuple[Turn, ...]:
    """Return what was said before a question in its conversation, oldest first.

    A platform that has not answered after `patience` seconds keeps nobody waiting: the log alone is remembered then.

    Raises:
        StorageError: the log cannot be read.
    """
    most = max(app.settings.limits.turns, REMEMBERED)
    scope = await readable_here(app, question.asker)
    rows = await app.queue.conversation(question.conversation, before=row.ticket, limit=most)
    own = [await _exchange(app, earlier, question, scope) for earlier in rows]
    heard = await _heard(platform, question, most, patience)
    known = {question.message}.union(*(exchange.messages for exchange in own))
    others = [message for message in heard if message.message not in known and message.at <= question.at]
    kept = await _without_own(app, others, question, scope)
    return merged(own, kept, scope)[-most:]


def merged(own: Iterable[Exchange], heard: Iterable[Heard], scope: Collection[str] = ()) -> tuple[Turn, ...]:
    """Return exchanges and messages by time; an answer follows its question, whatever was said meanwhile. Pure.

    A message of ours that only the platform knows of may stand on anything in the `scope` it is remembered in.
    """
    said = [(exchange.at, exchange.turns) for exchange in own]
    said += [(message.at, (_turn(message, scope),)) for message in heard if message.text.strip()]
    return tuple(turn for _, turns in sorted(said, key=lambda one: one[0]) for turn in turns)


def exchanged(
    earlier: Question, outcome: str, turn: Recalled | None, by: Question, scope: Collection[str]
) -> tuple[Turn, ...]:
    """Return what of an earlier question and its answer is remembered. Pure.

    Nothing of what was taken back, of what another asker alone was shown, and of what stands on anything that cannot
    be read any more; of what nobody saw an answer to, the question alone.

    Args:
        earlier: The question.
        outcome: How it was done with.
        turn: Its turn of the log; None where it never ran.
        by: The question that is asked now.
        scope: The corpora that can be read where that is asked.
    """
    if outcome in _TAKEN_BACK or (turn and (turn.retracted or not turn.corpora <= set(scope))):
        return ()
    if earlier.only_asker and not same_person(earlier.asker, by.asker):
        return ()
    asked = _asked(earlier.text, earlier.at)
    answered = turn.answered if turn else None
    if not turn or not answered or answered.failure or outcome in _UNSEEN or answered.answer.status is Status.CANCELLED:
        return (asked,)
    corpora = tuple(sorted(turn.corpora))
    return asked, Turn("bot", answered.text, turn.at, turn.language, cited_titles(answered), corpora)


async def _exchange(app: App, earlier: QueuedQuestion, by: Question, scope: Collection[str]) -> Exchange:
    """Return what is remembered of a row. Of one that cannot be read that is nothing."""
    messages = frozenset({earlier.message, *earlier.posted})
    try:
        entries = await app.audit.turn(earlier.turn_id) if earlier.turn_id else ()
        turn, question = recalled(entries), question_of(earlier)
        # What was shared is everybody's, and its post is known like any other.
        question = replace(question, only_asker=only_asker(question, entries))
        messages |= frozenset(map(str, acts.last(entries, "share").get("messages", ())))
    except ValueError as error:
        report(logging.WARNING, "an earlier turn cannot be read", by, error, ticket=earlier.ticket)
        return Exchange(earlier.taken_at, (), messages)
    shown = messages.union(turn.delivered) if turn else messages
    return Exchange(question.at, exchanged(question, earlier.outcome, turn, by, scope), shown)


async def _heard(platform: Platform, question: Question, most: int, patience: float) -> Sequence[Heard]:
    try:
        async with asyncio.timeout(patience):
            return await platform.heard(question, most)
    except (PlatformError, TimeoutError) as error:
        report(logging.WARNING, "the platform does not hand over the conversation", question, error)
        return ()


async def _without_own(
    app: App, heard: Sequence[Heard], question: Question, scope: Collection[str]
) -> tuple[Heard, ...]:
    """Leave out our own messages, unless they are older than the log and nothing is there that cannot be read here.

    What the log knows of is remembered from the log or not at all. Of any other message of ours nobody can tell what it
    stands on.
    """
    if all(message.user for message in heard):
        return tuple(heard)
    all_readable = {corpus.name for corpus in await app.manifest.catalogue()} <= set(scope)
    channel = question.place.channel_id
    return tuple(
        [
            message
            for message in heard
            if message.user or (all_readable and not await app.queue.by_message(channel, message.message))
        ]
    )


def _turn(message: Heard, scope: Collection[str]) -> Turn:
    if message.user:
        return _asked(message.text, message.at)
    return Turn("bot", message.text[:_LONGEST], message.at, corpora=tuple(sorted(scope)))


def _asked(text: str, at: datetime) -> Turn:
    return Turn("user", text[:_LONGEST], at, detect(text[:2_000]))
