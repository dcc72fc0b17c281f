"""Find out whether a reply has begun to repeat itself without end, as weak models do. Pure.

Numbers may count on from one repetition to the next: “Sentence 4 says so. Sentence 5 says so.” Rows of tables, items of
lists and lines of code do the same, so these are a loop only after more repetitions.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from storage.language.lazy_pattern import lazy_compile

CHECKED_CHARACTERS = 1_800  # of the end of a reply: enough for three repetitions of 600 characters
CHECKED_PERIODS = 8  # longer ones are mostly multiples of these
_TOKEN = lazy_compile(r"\d+|[^\W\d]+|\W")
_NUMBER = "0"  # stands for any number when tokens are compared
_SHORT, _LONG = 30, 100  # characters of one repetition
_LEAST = 240  # characters of all repetitions together
_LEAST_COUNTED = 400  # the same if numbers count on
_LEAST_SIGNS = 900  # the same without any word: the rule of a table, leading dots


def find_loop(text: str) -> int | None:
    """Return the index at which a text begins to repeat what is before it, up to its end; None if it does not.

    The last word is ignored, as more of it may follow.
    """
    tokens = list(_TOKEN.finditer(text, max(0, len(text) - CHECKED_CHARACTERS)))[:-1]
    shapes = [_NUMBER if token[0].isdecimal() else token[0] for token in tokens]
    for period, length in islice(_find_periods(shapes), CHECKED_PERIODS):
        begin = len(tokens) - length
        characters = tokens[-1].end() - tokens[begin].start()
        if characters < _LEAST:
            continue
        repeated = [token[0] for token in tokens[begin:]]
        if characters >= _least_characters(repeated, period, characters / (length / period)):
            after = (token for token in tokens[begin + period :] if token[0].isalnum())
            return next(after, tokens[-1]).start()
    return None


def _least_characters(repeated: Sequence[str], period: int, size: float) -> float:
    """Return from how many characters on repetitions of about `size` characters are a loop."""
    unit = repeated[:period]
    if not any(token.isalnum() for token in unit):
        return _LEAST_SIGNS
    counts = _count_on(repeated, period)
    if counts is None:
        return float("inf")
    if counts:
        return max(_LEAST_COUNTED, size * (6 if size >= _SHORT and "\n" not in unit else 10))
    return max(_LEAST, size * (3 if size >= _LONG else 4 if size >= _SHORT else 8))


def _count_on(repeated: Sequence[str], period: int) -> bool | None:
    """Return whether a number grows by one with each repetition; None if any number changes otherwise."""
    counting = False
    for place in (place for place in range(period) if repeated[place].isdecimal()):
        steps = {int(after) - int(before) for before, after in pairwise(repeated[place::period])}
        if len(steps) > 1 or not steps <= {0, 1}:
            return None
        counting = counting or steps == {1}
    return counting


def _find_periods(shapes: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield each period with which a list repeats itself at its end, shortest first, and for how many elements.

    This is the Z algorithm on the reversed list.
    """
    back = shapes[::-1]
    size, matches = len(back), [0] * len(back)
    left = right = 0
    for place in range(1, size):
        match = min(right - place, matches[place - left]) if place < right else 0
        while place + match < size and back[match] == back[place + match]:
            match += 1
        matches[place] = match
        if place + match > right:
            left, right = place, place + match
        if match >= place:
            yield place, place + match
