"""Words that turn a sentence's meaning round, such as "not", "more" and "first"; and wordings that leave it alone."""

import re
from collections.abc import Iterator
from functools import lru_cache
from random import Random

from evaluation.claims.changes.types import Change, replaced, shuffled, vocabulary

_NEGATED = re.compile(r"\b(?:not|never|cannot|no|nor|neither|without)\b|n['’]t\b", re.IGNORECASE)
_NOT = re.compile(r"(?<=\w)(?<!\bor) (?:not|never)(?= \w)(?! only)")
_OPENING_DATE = re.compile(r"(?:In|On|By|During) (?:[A-Z][a-z]+ )?(?:\d{1,2},? )?(?:[A-Z][a-z]+ )?[12]\d{3}, (?=\w)")
_TYPOGRAPHIC = str.maketrans({"“": '"', "”": '"', "’": "'", "‘": "'", "–": "-", "—": "-"})
_STRAIGHT = re.compile(r"(?<=\w)'(?=\w)")


def negated(text: str, rng: Random) -> Iterator[Change]:
    """Say that something is not so, in a sentence that denies nothing."""
    if not _NEGATED.search(text):
        for match in shuffled([*_helper().finditer(text)], rng):
            negation = rng.choice(["not", "not", "never"])
            yield replaced(text, match.span(), f"{match[0]} {negation}")


def affirmed(text: str, rng: Random) -> Iterator[Change]:
    """Take a "not" or "never" away."""
    for match in shuffled([*_NOT.finditer(text)], rng):
        yield replaced(text, match.span(), "")
    contracted = {short: long for long, short in vocabulary()["contractions"].items()}
    for match in shuffled([*re.finditer(r"\b\w+n['’]t\b", text)], rng):
        long = contracted.get(match[0].lower().replace("’", "'"))
        if long:
            yield replaced(text, match.span(), long.removesuffix("not").strip())


def compared(text: str, rng: Random) -> Iterator[Change]:
    """Turn a comparison, an order or a direction round."""
    found = [(match, new) for pattern, new in _opposites() for match in pattern.finditer(text)]
    for match, new in shuffled(found, rng):
        yield replaced(text, match.span(), new.capitalize() if match[0][0].isupper() else new, (new,))


def opening_dropped(text: str, rng: Random) -> Iterator[Change]:
    """Drop a date or a linking word that opens the sentence."""
    del rng
    match = _OPENING_DATE.match(text) or _linking().match(text)
    if match:
        yield Change(_capital(text[match.end() :]), match[0], "")


def article_dropped(text: str, rng: Random) -> Iterator[Change]:
    """Drop the article that opens the sentence."""
    del rng
    if re.match(r"The (?=\w)", text):
        yield Change(_capital(text[len("The ") :]), "The", "")


def contracted(text: str, rng: Random) -> Iterator[Change]:
    """Contract "is not", or write "isn't" out."""
    for long, short in shuffled([*vocabulary()["contractions"].items()], rng):
        for old, new in ((long, short), (short, long)):
            for match in re.finditer(rf"\b{old}\b", text):
                yield replaced(text, match.span(), new)


def retyped(text: str, rng: Random) -> Iterator[Change]:
    """Type quotation marks, apostrophes and dashes on another keyboard."""
    del rng
    plain = text.translate(_TYPOGRAPHIC)
    if plain != text:
        yield Change(plain, text, plain)
    elif _STRAIGHT.search(text):
        yield Change(_STRAIGHT.sub("’", text), "'", "’")


@lru_cache(maxsize=1)
def _helper() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(vocabulary()['helpers'])})\b(?= [a-z])")


@lru_cache(maxsize=1)
def _opposites() -> tuple[tuple[re.Pattern[str], str], ...]:
    pairs = [pair for both in vocabulary()["opposites"] for pair in (both, both[::-1])]
    return tuple((re.compile(rf"(?<![\w-]){old}(?![\w-])", re.IGNORECASE), new) for old, new in pairs)


@lru_cache(maxsize=1)
def _linking() -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(vocabulary()['openings'])}), (?=\w)", re.IGNORECASE)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
