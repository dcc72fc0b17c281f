"""Numbers: changed, or the same ones spelled otherwise. Years and days are those of `dates`, units those of `units`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from evaluation.claims.changes.dates import dates
from evaluation.claims.changes.types import Change, replaced, shuffled, vocabulary

_DIGITS = re.compile(r"(?<![\w.,/–-])(?<!\d\s)(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w/–]|[.,:-]\d|-\w|\s\d{3}\b)")
_YEAR = re.compile(r"1\d{3}|20\d\d")
_SHARES = (0.12, 0.25, 0.4, 0.7)
"""By how much of its worth a number is changed: no rounding comes near that."""
_COMMAS_FROM = 10_000


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands in a text, in digits or in words."""

    span: tuple[int, int]
    said: str
    value: float

    @property
    def in_words(self) -> bool:
        """Whether it is spelled out."""
        return self.said[0].isalpha()


def numbers(text: str) -> list[Number]:
    """Return the numbers of a text, but for one, years and those of dates, which are told by other modules."""
    taken = [date.span for date in dates(text)]
    digits = [
        Number(match.span(), match[0], float(match[0].replace(",", "")))
        for match in _DIGITS.finditer(text)
        if not _YEAR.fullmatch(match[0]) and not any(start <= match.start() < end for start, end in taken)
    ]
    words = [Number(match.span(), match[0], values()[match[0].lower()]) for match in _spelled().finditer(text)]
    return sorted([*digits, *words], key=lambda number: number.span)


def changed(text: str, rng: Random) -> Iterator[Change]:
    """Change a number by some of its worth."""
    for number in shuffled(numbers(text), rng):
        for value in shuffled(_others(number.value), rng):
            new = _like(number, value)
            yield replaced(text, number.span, new, _spellings(value, new))


def respelled(text: str, rng: Random) -> Iterator[Change]:
    """Write a number in words or in digits, or add or drop its commas."""
    for number in shuffled(numbers(text), rng):
        start, end = number.span
        if number.in_words:
            yield replaced(text, number.span, str(int(number.value)))
        elif number.value >= 1000 and "." not in number.said:
            plain = number.said.replace(",", "")
            yield replaced(text, number.span, plain if plain != number.said else f"{int(number.value):,}")
        elif number.said in _words() and text[start - 1 : start] not in {*"$£€"} and text[end : end + 1] not in {*"%°"}:
            yield replaced(text, number.span, _words()[number.said])


@lru_cache(maxsize=1)
def values() -> dict[str, int]:
    """Return number words by value: zero to ninety-nine."""
    small, tens = vocabulary()["small"], vocabulary()["tens"]
    over = {ten: 20 + 10 * place for place, ten in enumerate(tens)}
    both = {f"{ten}-{one}": value + more for ten, value in over.items() for more, one in enumerate(small[1:10], 1)}
    return {**{word: value for value, word in enumerate(small)}, **over, **both}


@lru_cache(maxsize=1)
def _words() -> dict[str, str]:
    """Return number words by digits, from two: one is a pronoun more often than a number."""
    return {str(value): word for word, value in values().items() if value > 1}


@lru_cache(maxsize=1)
def _spelled() -> re.Pattern[str]:
    longest_first = sorted(_words().values(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])", re.IGNORECASE)


def _others(value: float) -> list[float]:
    """Return other values of a like size, whole ones for a whole one."""
    if value != int(value):
        return [value * (1 + sign * share) for share in _SHARES for sign in (1, -1)]
    steps = {max(1, round(value * share)) for share in _SHARES}
    return [other for step in sorted(steps) for other in (value - step, value + step) if other > 1]


def _like(number: Number, value: float) -> str:
    """Return a value written as another one is: in words with its capital, with commas, with as many decimals."""
    if number.in_words:
        word = _words().get(f"{value:.0f}", f"{value:,.0f}")
        return word.capitalize() if number.said[0].isupper() else word
    decimals = len(number.said.partition(".")[2])
    return f"{value:,.{decimals}f}" if "," in number.said or value >= _COMMAS_FROM else f"{value:.{decimals}f}"


def _spellings(value: float, new: str) -> list[str]:
    """Return all that a value could be written as, `new` among them."""
    whole = [f"{value:.0f}", f"{value:,.0f}", _words().get(f"{value:.0f}", new)] if value == int(value) else []
    return list(dict.fromkeys([new, new.replace(",", ""), f"{value:g}", *whole]))
