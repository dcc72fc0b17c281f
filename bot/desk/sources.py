"""All pages that a conversation's answers cite, each once and numbered anew, as far as they may be read here now."""

from collections.abc import Iterable
from dataclasses import replace

from bot.access import Asker
from bot.app import App
from bot.desk.evidence import cited as source_of
from bot.desk.forgotten import forgotten_among
from bot.desk.permitted import could_be_told
from bot.desk.reading_here import readable_here
from bot.desk.recalling import Recalled, recalled
from bot.desk.seen import only_asker, without_handle
from bot.desk.types import Outcome
from bot.showing.view import EvidenceView, Source
from bot.words import say
from storage.types import Citation, QueuedQuestion

QUESTIONS = 100
"""How many of a conversation's last questions are looked at."""


async def sources_of(app: App, conversation: str, by: Asker, language: str) -> EvidenceView:
    """Return the pages; our own words where there are none that may be seen, whatever keeps them away.

    Raises:
        StorageError: They cannot be looked up.
        ValueError: The record is not as any version wrote it.
    """
    here = await readable_here(app, by)
    rows = await app.queue.conversation(conversation, limit=QUESTIONS)
    told = [turn for row in rows if (turn := await _told(app, row, by))]
    cited = [one for turn in told for one in _citations(turn) if one.corpus in here]
    gone = await forgotten_among(app, cited)
    shown = pages(one for one in cited if (one.corpus, one.document) not in gone)
    # In what language somebody asked is not told to whom nothing else is.
    spoken = language or (told[-1].language if shown else "") or "en"
    return EvidenceView(say("sources_heading", spoken), "", (), shown, "" if shown else say("sources_none", spoken))


def pages(citations: Iterable[Citation]) -> tuple[Source, ...]:
    """Return each page that is cited once, by its first citation, without its words; pure."""
    first: dict[tuple[str, str], Citation] = {}
    for citation in citations:
        first.setdefault((citation.corpus, citation.document), citation)
    return tuple(replace(source_of(one), number=place, quote="") for place, one in enumerate(first.values(), start=1))


async def _told(app: App, row: QueuedQuestion, by: Asker) -> Recalled | None:
    """Return the turn that answered a question; None where it was taken back, or was not for them to see."""
    entries = await app.audit.turn(row.turn_id) if row.turn_id else ()
    question, turn = without_handle(row), recalled(entries)
    if not turn or turn.retracted or row.outcome == Outcome.RETRACTED:
        return None
    return turn if could_be_told(question.asker, by, alone=only_asker(question, entries)) else None


def _citations(turn: Recalled) -> tuple[Citation, ...]:
    return turn.answered.answer.citations if turn.answered else ()
