"""What kind of thing a question asks for, and whether a sentence has such a thing to offer. Pure.

"How many", "when", "who" and "where" ask for a number, a date, a person and a place. A sentence offers one only if it
has one that the question does not name itself. The words stand in `answer_types.json`, of several languages at once.
"""

import json
import re
from enum import StrEnum
from functools import cache
from importlib import resources

from storage.language.scripts import is_unspaced
from storage.language.words import content_terms, plain, stop_words, words


class AnswerType(StrEnum):
    """A kind of thing that can be asked for."""

    NUMBER = "number"
    DATE = "date"
    PERSON = "person"
    PLACE = "place"


_DIGITS = re.compile(r"\d")
_HAN_NUMBER = re.compile("[一二两三四五六七八九十百千万亿半]")
_SPACED_CASELESS = re.compile(r"[^\W\d_A-Za-z\u00c0-\u04ff]")


def asked_for(question: str) -> AnswerType | None:
    """Return the kind of thing that a question asks for first; None if it asks for no such thing."""
    text = _spaced(question)
    found = [(match.start(), kind) for kind in AnswerType if (match := _questions(kind).search(text))]
    return min(found)[1] if found else None


def offers(sentence: str, kind: AnswerType, question: str) -> bool:
    """Return whether a sentence has a thing of this kind that the question does not name itself."""
    known = {plain(word) for word in words(question)}
    new = [word for word in words(sentence) if plain(word) not in known]
    if kind is AnswerType.NUMBER:
        return any(is_number(word) for word in new)
    if kind is AnswerType.DATE:
        return any(is_number(word) or plain(word) in _listed("dates") for word in new)
    return bool(names(sentence, known=known)) or bool(_SPACED_CASELESS.search("".join(new)))


def counts(sentence: str, question: str, language: str) -> bool:
    """Return whether a sentence gives a number of what "how many ..." asks for: "25 paid days" of "how many days"."""
    match = _questions(AnswerType.NUMBER).search(text := _spaced(question))
    unit = content_terms(text[match.end() :], language)[:1] if match else []
    said = words(sentence)
    return bool(unit) and any(
        is_number(word) and unit[0] in content_terms(" ".join(said[place + 1 : place + 3]), language)
        for place, word in enumerate(said)
    )


def is_number(word: str) -> bool:
    """Return whether a word has a digit in it or is a number written out."""
    return bool(_DIGITS.search(word)) or plain(word) in _listed("numbers") or bool(_HAN_NUMBER.search(word))


def is_date(word: str) -> bool:
    """Return whether a word names a month, a day of the week or another time."""
    return plain(word) in _listed("dates")


def names(text: str, *, known: frozenset[str] | set[str] = frozenset()) -> list[str]:
    """Return the words that look like proper names: capitals, not only for opening a sentence.

    A capital at the very beginning counts if the word is no stop word. `known` words, in plain spelling, are left out.
    """
    common = stop_words() | known
    return [word for word in words(text) if word[0].isupper() and plain(word) not in common]


def _spaced(text: str) -> str:
    return " ".join(map(plain, words(text)))


@cache
def _lists() -> dict[str, list[str]]:
    path = resources.files("pipeline.extraction").joinpath("answer_types.json")
    lists: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return lists


@cache
def _listed(key: str) -> frozenset[str]:
    return frozenset(map(plain, _lists()[key]))


@cache
def _questions(kind: AnswerType) -> re.Pattern[str]:
    """Return the pattern of what asks for this kind; a star in the lists stands for any words."""
    phrases = (" * ".join(map(_spaced, phrase.split(" * "))) for phrase in _lists()[f"asks for a {kind}"])
    patterns = ((phrase, re.escape(phrase).replace(r"\*", ".*")) for phrase in phrases)
    return re.compile("|".join(found if is_unspaced(phrase[0]) else rf"\b{found}\b" for phrase, found in patterns))
