"""What a change is, and whoever proposes changes."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence after a change of one thing in it."""

    text: str
    old: str
    new: str
    absent: tuple[str, ...] = ()
    """What may not stand in the passage if the change is to make it false: the new value, however it is spelled."""


Changer = Callable[[str, Random], Iterator[Change]]
"""Proposes changes to a sentence, in an order that the random numbers decide; none where it has nothing to change."""


def replaced(text: str, span: tuple[int, int], new: str, absent: Sequence[str] = ()) -> Change:
    """Return the change of one stretch of a sentence."""
    start, end = span
    return Change(text[:start] + new + text[end:], text[start:end], new, tuple(absent))


def stands(value: str, text: str) -> bool:
    """Return whether a value stands in a text by itself, whatever its case: 5 does not stand in 1.5 or 50."""
    before = r"(?<![\w.,])(?<!\w-)" if value[:1].isdigit() else r"(?<!\w)"
    after = r"(?!\w|[.,]\d)" if value[-1:].isalnum() else ""
    return bool(re.search(before + re.escape(value) + after, text, re.IGNORECASE))


def shuffled(found: Sequence[Any], rng: Random) -> list[Any]:
    """Return the same in another order."""
    return rng.sample(found, len(found))


@lru_cache(maxsize=1)
def vocabulary() -> Any:
    """Return the words that changes are made of: `words.json` beside this module."""
    return json.loads(files(__package__).joinpath("words.json").read_text(encoding="utf-8"))
