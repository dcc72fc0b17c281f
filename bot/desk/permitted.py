"""Who may see a turn again: pure decisions over where it was answered, who looks, and what is readable there now.

A ticket is a number that anybody can guess. To whoever may not see its turn there is nothing: the same is said as of a
ticket that was never given out.
"""

from collections.abc import Collection

from bot.access import Asker
from bot.desk.recalling import Recalled
from bot.words import say


class Denied(Exception):
    """What somebody wanted is not done. `words` tell them so, and nothing of what they may not see."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def not_here(language: str) -> Denied:
    """Return what is said where there is nothing to see, for whatever reason.

    `language` is that of whoever looks. It must not be the question's: that would tell that there is one.
    """
    return Denied(say("not_here", language or "en"))


def could_be_told(asker: Asker, by: Asker, *, alone: bool) -> bool:
    """Return whether somebody stands where a turn was answered, or is who asked.

    Args:
        asker: Who asked, and where.
        by: Who looks, and where.
        alone: Whether the asker alone was shown the answer.
    """
    if by.platform == by.kind == "terminal":
        return True
    return same_person(asker, by) or (not alone and same_channel(asker, by))


def same_channel(asker: Asker, by: Asker) -> bool:
    """Return whether both stand in one channel, which is no DM."""
    places = {(one.platform, one.workspace, one.channel) for one in (asker, by)}
    return asker.kind == by.kind == "channel" and len(places) == 1 and bool(by.channel)


def same_person(asker: Asker, by: Asker) -> bool:
    """Return whether both are one person. On Discord they are so over all servers, on Slack within one workspace."""
    if not by.user or (asker.platform, asker.user) != (by.platform, by.user):
        return False
    return by.platform == "discord" or asker.workspace == by.workspace


def may_see_answer(recalled: Recalled, here: Collection[str]) -> bool:
    """Return whether an answer may be seen: all that it cites can be read here. A retracted one is gone for everybody.

    A fact-check gives reasons in words that are held to no footnote: all that it was made from must be readable.
    """
    used = recalled.corpora if recalled.task == "check" else recalled.cited
    return not recalled.retracted and used <= set(here)


def may_see_evidence(recalled: Recalled, here: Collection[str]) -> bool:
    """Return whether all that a turn was made from can be read here; a corpus that nobody knows cannot."""
    return not recalled.retracted and recalled.corpora <= set(here)
