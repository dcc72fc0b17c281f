"""Recognise replies that repeat the prompt instead of answering it. Pure."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from storage.language.lazy_pattern import lazy_compile
from storage.language.months import MONTHS

SHARED_WITH_INSTRUCTIONS = 12  # words in a row that a reply may share with its instructions
SHARED_WITH_EXAMPLES = 8  # the same with the replies of worked examples
UNREADABLE = "This reply cannot be read: "
_WORD = lazy_compile(r"\w+")
_PROMPT_LINE = lazy_compile(r"^(?:(?:User|Chatbot): |=== |Today is \w+day, )", re.MULTILINE)
_QUOTED = lazy_compile(r"^=== (\w+) begins ===$.*?^=== \1 ends ===$", re.MULTILINE | re.DOTALL)
_EXAMPLE = lazy_compile(r"^=== example begins ===$|^Today is Monday, 3 March 2025\.$", re.MULTILINE)
_DELIMITER = lazy_compile(r"\b[bcdfghjkmnpqrstvwxz]{12}\b")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OF_DATES = frozenset({"today", "is", "was", "the", "of", "on", *_WEEKDAYS, *MONTHS})


class PromptEcho:
    """Finds where a reply begins to repeat its prompt; the prompt is given as roles and texts.

    Instructions are the system's text, and the turn's without what it quotes: after the first colon of a line are words
    of others, except in our own words about an unreadable reply. Only worked examples of our own count, not earlier
    answers, and nothing that the turn itself says.
    """

    def __init__(self, messages: Sequence[tuple[str, str]], *, examples: bool = True) -> None:
        turn = "\n".join(text for role, text in messages[-3:] if role == "user")
        lines = _QUOTED.sub("", turn).splitlines()
        own = (line if line.startswith(UNREADABLE) else re.split("[:“]", line)[0] for line in lines)
        self._instructions = _known_runs(messages[0][1], SHARED_WITH_INSTRUCTIONS)
        self._instructions |= frozenset(_runs("\n".join(own), SHARED_WITH_INSTRUCTIONS))
        pairs = [pair for pair in pairwise(messages) if examples and pair[1][0] == "assistant"]
        replies = [reply for (_, asked), (_, reply) in pairs if _EXAMPLE.search(asked)]
        known = _known_runs("\n".join(replies), SHARED_WITH_EXAMPLES)
        self._examples = known - frozenset(_runs(turn, SHARED_WITH_EXAMPLES))

    def find(self, reply: str) -> int | None:
        """Return the index at which a reply begins to repeat its prompt; None if it does not."""
        line = _PROMPT_LINE.search(reply)
        starts = [line.start()] if line else []
        words = list(_WORD.finditer(reply))
        for known, shared in ((self._instructions, SHARED_WITH_INSTRUCTIONS), (self._examples, SHARED_WITH_EXAMPLES)):
            runs = zip(_runs(reply, shared), words, strict=False)
            starts += [word.start() for run, word in runs if run in known][:1]
        return min(starts, default=None)


@lru_cache(maxsize=64)
def _known_runs(text: str, shared: int) -> frozenset[tuple[str, ...]]:
    return frozenset(_runs(text, shared))


def _runs(text: str, shared: int) -> Iterator[tuple[str, ...]]:
    """Yield the words of a text in runs of one more than may be shared."""
    words = [word[0].casefold() for word in _WORD.finditer(text)]
    return zip(*(words[place:] for place in range(shared + 1)), strict=False)


def is_bare_date(statement: str) -> bool:
    """Return whether a statement consists of a date, as the first line of a prompt does."""
    words = (word[0].casefold() for word in _WORD.finditer(statement))
    return all(word.isdecimal() or word in _OF_DATES for word in words)


def has_delimiter(statement: str) -> bool:
    """Return whether a statement has the random word that encloses quoted text in a prompt."""
    return bool(_DELIMITER.search(statement))
