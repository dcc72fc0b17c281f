"""Remove identities from lessons: names and ids of askers, addresses, numbers and secrets. Pure.

What documents say about people stays, because the bot quotes it. But names of askers are replaced everywhere. Within a
lesson, a name always gets the same placeholder, so that prompt and reply still agree.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from evaluation.distillation.student_lessons import Lesson

LEAST_NAME = 2  # characters; names and parts of names that are not longer are too frequent
_PATTERNS = (
    ("MENTION", re.compile(r"<[@#!&][^<>\s|]{2,64}(?:\|[^<>]{0,80})?>|(?<![\w@.])@[A-Za-z0-9_][\w.-]{1,31}\b")),
    # Also a truncated address, and one written as "name (at) host".
    ("EMAIL", re.compile(r"(?<![\w.+-])[\w.+-]{1,64}(?:@| ?[(\[]at[)\]] ?)[\w-]{1,63}(?:\.[\w-]{0,63}(?!\w))*")),
    (
        "SECRET",
        re.compile(r"\b(?:xox[a-z]-|xapp-|[rs]k[-_]|gh[pousr]_|glpat-|AKIA)[\w-]{8,}|\beyJ[\w-]{10,}\.[\w.-]{10,}"),
    ),
    (
        "PHONE",
        re.compile(
            r"(?<![\w+./-])(?:(?:\+\d{1,3}[\s./-]?|\(0\d{1,5}\)[\s./-]?|0(?=\d{2,5}[\s/-]))\d(?:[\s./-]?\d){5,12}"
            r"|0\d{9,10}|(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4})(?!\w)"
        ),
    ),
    ("ID", re.compile(r"\b[UWCDGT](?=[A-Z]*\d)[A-Z0-9]{8,11}\b|\b\d{17,20}\b")),
)


_NAME = r"([A-ZÀ-Þ][\w'’-]+(?: (?:(?:de|van|von|der|di|da|la|le|el|bin|al) )?[A-ZÀ-Þ][\w'’-]+)"
_SELF = re.compile(
    rf"\b(?:[Mm]y name is|[Ii]ch heiße|[Jj]e m['’]appelle|[Mm]e llamo|[Mm]i chiamo|[Mm]eu nome é) {_NAME}{{0,3}})"
    rf"|\b(?:I am|I['’]m|[Tt]his is|[Ii]ch bin|[Jj]e suis|[Ss]oy|[Ss]ono|[Ss]ou|"
    r"[Rr]egards,|[Yy]ours,|[Tt]hanks,|Grüße,|Gruß,)"
    rf"\s+{_NAME}{{1,3}})"
)


def find_own_names(texts: Iterable[str]) -> frozenset[str]:
    """Return the names by which askers introduce themselves, because a platform may not know them."""
    return frozenset(match[1] or match[2] for text in texts for match in _SELF.finditer(text))


def build_name_pattern(names: Iterable[str], ids: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches names of askers and places, capitalized parts of these names, and their ids."""
    whole = {text for text in (*names, *ids) if len(text) > LEAST_NAME}
    parts = {part for name in names for part in name.split() if len(part) > LEAST_NAME and not part.islower()} - whole
    patterns = [rf"(?i:{re.escape(text)})" for text in _sort_longest_first(whole)]
    patterns += map(re.escape, _sort_longest_first(parts))
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)" if patterns else r"(?!)")


def _sort_longest_first(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=lambda text: (-len(text), text))


def remove_identities(lesson: Lesson, named: re.Pattern[str]) -> Lesson:
    """Return a lesson in which placeholders replace all identities in input and output."""
    placeholders = dict[str, str]()

    def hold(kind: str, found: str) -> str:
        key = f"{kind}:{found.casefold()}"
        if key not in placeholders:
            placeholders[key] = f"{kind}_{sum(known.startswith(f'{kind}:') for known in placeholders) + 1}"
        return placeholders[key]

    def clean(text: str) -> str:
        for kind, pattern in _PATTERNS:
            text = pattern.sub(lambda match, kind=kind: hold(kind, match[0]), text)  # type: ignore[misc]
        return named.sub(lambda match: hold("NAME", match[0]), text)

    return replace(lesson, input=clean(lesson.input), output=clean(lesson.output))


def find_identities(text: str, named: re.Pattern[str]) -> Iterator[str]:
    """Yield the identities that remain in a text."""
    for _, pattern in (*_PATTERNS, ("NAME", named)):
        yield from (match[0] for match in pattern.finditer(text))
