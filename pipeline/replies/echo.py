"""Recognise replies that repeat the prompt instead of answering it. Pure."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from storage.language.lazy_pattern import lazy_compile
from storage.language.months import MONTHS

MOST_SHARED = 12  # words in a row that a reply may share with its instructions
UNREADABLE = "This reply cannot be read: "
_WORD = lazy_compile(r"\w+")
_PROMPT_LINE = lazy_compile(r"^(?:(?:User|Chatbot): |=== |Today is \w+day, )", re.MULTILINE)
_QUOTED = lazy_compile(r"^=== (\w+) begins ===$.*?^=== \1 ends ===$", re.MULTILINE | re.DOTALL)
_DELIMITER = lazy_compile(r"\b[bcdfghjkmnpqrstvwxz]{12}\b")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OF_DATES = frozenset({"today", "is", "was", "the", "of", "on", *_WEEKDAYS, *MONTHS})


def find_echo(reply: str, instructions: str) -> int | None:
    """Return the index at which a reply begins to repeat lines of its prompt or `instructions`; None if it does not."""
    line = _PROMPT_LINE.search(reply)
    words = list(_WORD.finditer(reply))
    known = _word_runs(instructions)
    runs = zip(_runs(word[0].casefold() for word in words), words, strict=False)
    start = next((word.start() for run, word in runs if run in known), None)
    return min((place for place in (line and line.start(), start) if place is not None), default=None)


def read_instructions(system: str, turn: str) -> str:
    """Return the text of a prompt that no reply repeats: the system's, and the turn's without what it quotes.

    After the first colon of a line are words of others, except in our own words about an unreadable reply.
    """
    lines = _QUOTED.sub("", turn).splitlines()
    own = (line if line.startswith(UNREADABLE) else re.split("[:“]", line)[0] for line in lines)
    return "\n".join((system, *own))


@lru_cache(maxsize=32)
def _word_runs(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_runs(word[0].casefold() for word in _WORD.finditer(text)))


def _runs(words: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the words in runs of one more than may be shared."""
    listed = list(words)
    return zip(*(listed[place:] for place in range(MOST_SHARED + 1)), strict=False)


def is_bare_date(statement: str) -> bool:
    """Return whether a statement consists of a date, as the first line of a prompt does."""
    words = (word[0].casefold() for word in _WORD.finditer(statement))
    return all(word.isdecimal() or word in _OF_DATES for word in words)


def has_delimiter(statement: str) -> bool:
    """Return whether a statement has the random word that encloses quoted text in a prompt."""
    return bool(_DELIMITER.search(statement))
