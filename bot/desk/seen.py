"""A turn as somebody who acts on it may see it: looked up by its ticket, and held to what is readable there now."""

from dataclasses import dataclass, replace

from bot.access import Asker
from bot.app import App
from bot.desk import acts
from bot.desk.forgotten import forgotten_among
from bot.desk.keeping import question_of
from bot.desk.permitted import Denied, could_be_told, may_see_answer, not_here
from bot.desk.reading_here import readable_here
from bot.desk.recalling import Recalled, recalled
from bot.desk.types import Outcome, Question
from bot.turns import Answered
from bot.words import say
from storage.types import LogEntry, QueuedQuestion


@dataclass(frozen=True, slots=True)
class Seen:
    """A question, its turn, and who looks."""

    row: QueuedQuestion
    question: Question
    entries: tuple[LogEntry, ...]
    turn: Recalled
    by: Asker
    theirs: str
    """The language of whoever looks; empty where it is not known."""
    here: frozenset[str]
    """The corpora that may be read where `by` stands, now."""

    @property
    def language(self) -> str:
        """What they are answered in."""
        return self.theirs or self.turn.language or "en"

    @property
    def nothing(self) -> Denied:
        """What they are told of what they may not see: the same as of a ticket that there is not."""
        return not_here(self.theirs)

    def denied(self, occasion: str) -> Denied:
        """Return that what they want is not done, and why: they may see the answer, and so be told."""
        return Denied(say(occasion, self.language))

    @property
    def answered(self) -> Answered:
        """The answer. Raises `Denied` until there is one."""
        if not self.turn.answered:
            raise self.denied("acting_later")
        return self.turn.answered


async def seen(app: App, ticket: int, by: Asker, language: str) -> Seen:
    """Look up a turn for somebody.

    Raises:
        Denied: There is no such ticket, or they may not see its answer, or it cites a page that was forgotten: in the
            same words.
        StorageError: It cannot be looked up.
        ValueError: The record is not as any version wrote it.
    """
    here = await readable_here(app, by)
    row = await app.queue.get(ticket)
    if not row or row.outcome == Outcome.RETRACTED:
        raise not_here(language)
    entries = await app.audit.turn(row.turn_id) if row.turn_id else ()
    question, turn = without_handle(row), recalled(entries)
    if not could_be_told(question.asker, by, alone=only_asker(question, entries)):
        raise not_here(language)
    if not turn:
        raise Denied(say("acting_later", language or "en"))
    cited = turn.answered.answer.citations if turn.answered else ()
    if not may_see_answer(turn, here) or await forgotten_among(app, cited):
        raise not_here(language)
    return Seen(row, question, entries, turn, by, language, here)


def without_handle(row: QueuedQuestion) -> Question:
    """Return a question without its secret, which only the desk needs to answer it."""
    return replace(question_of(row), handle="")


def only_asker(question: Question, entries: tuple[LogEntry, ...]) -> bool:
    """Return whether an answer is shown to the asker alone; one that they shared is the channel's."""
    return question.only_asker and not acts.last(entries, "share")
