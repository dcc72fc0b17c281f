"""What people think of an answer: 👍 or 👎 and, if they like, why. Who changes their mind adds an entry."""

from typing import Literal

from bot.app import App
from bot.desk import acts
from bot.desk.seen import Seen
from bot.words import say

LONGEST = 2_000
"""Characters of a comment that are kept."""


async def note_feedback(app: App, seen: Seen, what: Literal["up", "down"], comment: str = "") -> str:
    """Put somebody's opinion on record, and return our thanks. The same opinion again, with no new word, is known.

    Raises:
        Denied: There is no answer yet.
        StorageError: It could not be kept.
    """
    answer_id, comment = seen.answered.answer_id, comment.strip()
    known = acts.opinion(seen.entries, seen.by)
    kept = comment[:LONGEST]
    if (known.get("what"), known.get("comment")) != (what, kept) and (comment or known.get("what") != what):
        await app.audit.append(acts.act(answer_id, what, seen.by, comment=kept))
    return say("feedback_cut" if kept != comment else "feedback_noted", seen.language, most=LONGEST)
