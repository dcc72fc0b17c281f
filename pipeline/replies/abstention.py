"""Recognise prose in which a model says that the notes do not answer. Pure; the phrases stand in `abstentions.json`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import permutations

from storage.language.scripts import is_unspaced

_OPENING_CHARACTERS = 60  # a sentence speaks of the notes themselves where they come no later than this
_GAP = "[^.;:]{0,40}?"  # between the notes, the word that denies and the verb


@dataclass(frozen=True, slots=True)
class _AbstentionPatterns:
    silent_notes: re.Pattern[str]
    unknown: re.Pattern[str]


def is_about_notes(sentence: str) -> bool:
    """Return whether a sentence tells of the notes that they do not say something, which answers nothing."""
    found = _abstention_patterns().silent_notes.search(_plain(sentence))
    return found is not None and found.start() <= _OPENING_CHARACTERS


def is_abstention(sentence: str) -> bool:
    """Return whether a sentence without a source says that there is no answer."""
    return is_about_notes(sentence) or bool(_abstention_patterns().unknown.search(_plain(sentence)))


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


@cache
def _abstention_patterns() -> _AbstentionPatterns:
    text = resources.files("pipeline.replies").joinpath("abstentions.json").read_text(encoding="utf-8")
    silent, unknown = list[str](), list[str]()
    for phrases in json.loads(text).values():
        parts = [_any_phrase(phrases[kind]) for kind in ("notes", "denies", "tells")]
        silent += [_GAP.join(order) for order in permutations(parts)]
        unknown.append(_any_phrase(phrases["unknown"]))
    return _AbstentionPatterns(re.compile("|".join(silent)), re.compile("|".join(unknown)))


def _any_phrase(phrases: Sequence[str]) -> str:
    """Return the pattern of any phrase: between word ends, except in scripts that put no spaces between words."""
    whole = (phrase if is_unspaced(phrase[0]) else rf"(?<!\w){phrase}(?!\w)" for phrase in phrases)
    return f"(?:{'|'.join(whole)})"
