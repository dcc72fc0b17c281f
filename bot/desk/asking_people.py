"""Ask a person: those whom the settings of the channel name are called to a question, once. Nobody else is, ever.

Nor is the asker of a question that nobody else sees: they are asked before it is posted, and may answer beneath it.
"""

from bot.app import App
from bot.desk import acts
from bot.desk.reading_here import settings_of
from bot.desk.seen import Seen
from bot.platform import Platform, PlatformError
from bot.words import say

LONGEST = 300
"""Characters of the question that are repeated."""


async def ask_people(app: App, platform: Platform, seen: Seen) -> str:
    """Call the people of a question's channel to it, and return what whoever wanted that is told.

    It is on record before they are called, so that they are called once at most; a call that the platform refused may
    be tried again.

    Raises:
        Denied: Nobody is named there, they were asked before, or the platform refuses.
        StorageError: It could not be put on record; nobody was called.
    """
    turn_id, place, language = seen.turn.turn_id, seen.question.place, seen.turn.language or "en"
    people = (await settings_of(app, place.channel_id)).ask
    if not people:
        raise seen.denied("ask_nobody")
    if acts.last(seen.entries, "ask"):
        raise seen.denied("ask_already")
    await app.audit.append(acts.act(turn_id, "ask", seen.by, state=acts.BEGUN, people=people))
    try:
        text = say("ask_call", language, question=shortened(seen.question.text))
        posted = await platform.call(place, text, tuple(map(_id, people)))
    except PlatformError as error:
        await app.audit.append(acts.act(turn_id, "ask", seen.by, state=acts.FAILED, reason=str(error)))
        raise seen.denied("ask_failed") from error
    await app.audit.append(acts.act(turn_id, "ask", seen.by, state=acts.DONE, messages=posted.messages))
    return say("ask_done", seen.language)


def shortened(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _id(person: str) -> str:
    """Return the platform's own id of a person whom settings name, such as `U1` of `slack:T1/U1`."""
    return person.rpartition("/")[2]
