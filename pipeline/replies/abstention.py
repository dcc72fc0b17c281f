"""Recognise prose in which a model says that the notes do not answer. Pure; the phrases are in `abstentions.json`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import permutations

from storage.language.scripts import is_unspaced

_OPENING_CHARACTERS = 60  # a sentence is about the notes if it names them within these
_GAP = "[^.;:]{0,40}?"  # between the notes, the negation and the verb


@dataclass(frozen=True, slots=True)
class _SilentNotes:
    """A language's pattern for "the notes do not say". `parts` are searched first: all must occur."""

    parts: tuple[re.Pattern[str], ...]
    whole: re.Pattern[str]

    def find(self, plain: str) -> re.Match[str] | None:
        return self.whole.search(plain) if all(part.search(plain) for part in self.parts) else None


@dataclass(frozen=True, slots=True)
class _AbstentionPatterns:
    silent_notes: tuple[_SilentNotes, ...]
    unknown: re.Pattern[str]


def is_about_notes(sentence: str) -> bool:
    """Return whether a sentence only says that the notes do not say something."""
    plain = _plain(sentence)
    matches = (silent_note.find(plain) for silent_note in _abstention_patterns().silent_notes)
    return any(match is not None and match.start() <= _OPENING_CHARACTERS for match in matches)


def is_abstention(sentence: str) -> bool:
    """Return whether a sentence without a source says that the answer is unknown, or is not in the notes."""
    return is_about_notes(sentence) or bool(_abstention_patterns().unknown.search(_plain(sentence)))


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


@cache
def _abstention_patterns() -> _AbstentionPatterns:
    text = resources.files("pipeline.replies").joinpath("abstentions.json").read_text(encoding="utf-8")
    silent, unknown = list[_SilentNotes](), list[str]()
    for phrases in json.loads(text).values():
        parts = [_any_phrase(phrases[kind]) for kind in ("denies", "notes", "tells")]
        whole = "|".join(_GAP.join(order) for order in permutations(parts))
        silent.append(_SilentNotes(tuple(map(re.compile, parts)), re.compile(whole)))
        unknown.append(_any_phrase(phrases["unknown"]))
    return _AbstentionPatterns(tuple(silent), re.compile("|".join(unknown)))


def _any_phrase(phrases: Sequence[str]) -> str:
    """Return a pattern for any of the phrases, as whole words if the script puts spaces between words."""
    whole = (phrase if is_unspaced(phrase[0]) else rf"(?<!\w){phrase}(?!\w)" for phrase in phrases)
    return f"(?:{'|'.join(whole)})"
