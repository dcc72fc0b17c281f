"""Distinguish things of one kind: room 7 from room 12, form B7 from form B2, the Bronze plan from the Gold one.

The designation is a number, letter or code after the word for the kind, or a name before it. In a table it can be the
value in a column named after the kind.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from pipeline.extraction.candidates import Candidate, asks_yes_or_no, is_date
from pipeline.support.analysis.proper_names import CAPITALISED_NOUNS, is_ordinary_word
from pipeline.support.analysis.quantity_parser import is_unit
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import content_terms, fold_spelling, stop_words, words
from storage.types import PassageKind

_LETTER = r"[A-HJ-Z](?!\.\s*[A-Z]|[-&'’])"  # no initial, no "V&A"
_CODE = r"(?!(?:19|20)\d\d\b)[A-Za-z]{0,4}-?\d{1,6}[A-Za-z]?(?![.,:/]\d|-\w|\s?[%°€$£])"  # no year, price or time
_MARK = rf"(?:{_CODE}|{_LETTER})(?!\w)"
_JOINT = r"(?:\s*(?:,|&|/|[-–])\s*|,?\s+(?:and|or|to|und|oder|bis|et|ou|à|y|o|e)\s+)"
_MARKED = lazy_compile(
    rf"(?P<before>[^\W\d_]+)?[ \t]*\b(?P<kind>[^\W\d_]{{2,}})[ \t]+(?P<marks>{_MARK}(?:{_JOINT}{_MARK})*)"
)
_MARKS = lazy_compile(_MARK)
_RANGE = lazy_compile(r"(\d{1,6})\s*(?:[-–]|to|bis|à)\s*(\d{1,6})")
_NAMED = lazy_compile(
    r"(?P<before>(?:^|[.!?:;\n])[^\w\n]*)?\b(?P<name>[A-Z][^\W\d_]+)(?=[ \t]+(?P<kind>[^\W\d_]{3,})\b(?![ \t]+[A-Z]))"
)
_CELL = lazy_compile(r"(?:^|;)[ \t]*([^:;\n]+):[ \t]*([^;\n]+)", re.MULTILINE)
_NEXT = lazy_compile(r"\s+([^\W\d_]+)")
_COUNTED = lazy_compile(r"\d\s+([^\W\d_]{3,})\b")
_ACTORS = frozenset(
    ["i", "you", "we", "they", "he", "she", "it", "one", "to", "ich", "wir", "sie", "je", "nous", "vous"]
)
_LED = lazy_compile(r"\b(?:the|an?|this|that|your|our|my|their|does|is|are|de|het|den|en|ett?)\s+$", re.IGNORECASE)
_LONGEST_LEAD = 8  # characters, with the space after it
_MOST_LISTED = 1000  # the most numbers that a range stands for

Designations = Mapping[str, frozenset[str]]  # term of a kind -> the marks that distinguish things of that kind


def is_about_others(candidate: Candidate, question: str) -> bool:
    """Return whether a candidate names only other things of a kind than the question: Pump B, not Pump A.

    If it names none of the kind, the nearest of lead-in, section and title decides. If that names only what was asked
    for, other names in the candidate do not count.
    """
    language, passage = candidate.hit.document.language, candidate.hit.passage
    designated = _find_asked(question, language)
    if not designated or _find_counted(question) & _find_counted(candidate.text):
        return False
    ordinary = any(map(is_ordinary_word, frozenset().union(*designated.values())))
    named = _find_designations(candidate.text, language, ordinary)
    if passage.kind is PassageKind.TABLE:
        named = _merge(named, _find_in_cells(candidate.text, language))
    above = [
        _find_designations(text, language, ordinary)
        for text in (candidate.lead, passage.section, candidate.hit.document.title)
    ]
    folded = frozenset(map(fold_spelling, words(candidate.text)))
    return any(
        _names_others(kind, marks, named, above)
        for kind, marks in designated.items()
        if folded.isdisjoint(mark for mark in marks if len(mark) > 1 and not mark.isdigit())
    )


def _names_others(kind: str, marks: frozenset[str], named: Designations, above: Sequence[Designations]) -> bool:
    nearest = next((names[kind] for names in above if kind in names), frozenset[str]())
    if kind in named:
        return marks.isdisjoint(named[kind]) and not (nearest and nearest <= marks)
    return bool(nearest) and marks.isdisjoint(nearest)


@lru_cache(maxsize=64)
def _find_asked(question: str, language: str) -> Designations:
    return _collect(
        _find_marks(question, language, counts=asks_yes_or_no(question)), _find_names(question, language, led=True)
    )


@lru_cache(maxsize=1024)
def _find_designations(text: str, language: str, ordinary: bool) -> Designations:  # noqa: FBT001 - cached by place
    return _collect(_find_marks(text, language), _find_names(text, language, ordinary=ordinary))


def _find_marks(text: str, language: str, *, counts: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each kind with the designation after it, but no quantities: "get 25 days", "we may invite 7 people".

    With `counts`, a number before a content word is a quantity, too.
    """
    for match in _MARKED.finditer(text):
        following = _NEXT.match(text, match.end())
        after = following[1] if following else ""
        number = match["marks"][-1:].isdigit() and not match["marks"][:1].isalpha()
        counted = number and (
            fold_spelling(match["before"] or "") in _ACTORS
            or is_unit(after.lower())
            or (counts and bool(content_terms(after, language)))
        )
        if not counted and (kind := _find_kind(match["kind"], language)):
            listed = [mark[0] for mark in _MARKS.finditer(match["marks"])]
            for first, last in _RANGE.findall(match["marks"]):
                listed += map(str, range(int(first), min(int(last), int(first) + _MOST_LISTED)))
            yield from ((kind, fold_spelling(mark)) for mark in listed)


def _find_names(text: str, language: str, *, led: bool = False, ordinary: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each kind with the name before it: "the Bronze plan".

    With `ordinary`, an ordinary word at the start of a sentence may be a name. With `led`, only a name after an article
    or auxiliary counts: "at AWS cost" names no kind of cost.
    """
    if language in CAPITALISED_NOUNS:
        return
    for match in _NAMED.finditer(text):
        name, begins = fold_spelling(match["name"]), match["before"] is not None or match.start("name") == 0
        if (
            name in stop_words() | stop_words(language)
            or is_date(name)
            or (begins and not ordinary and is_ordinary_word(name))
        ):
            continue
        start = match.start("name")
        if led and not _LED.search(text, max(0, start - _LONGEST_LEAD), start):
            continue
        if kind := _find_kind(match["kind"], language):
            yield kind, name


def _find_counted(text: str) -> frozenset[str]:
    """Return the words that numbers count: "people" of "5 people"."""
    return frozenset(_COUNTED.findall(text.lower())) - stop_words()


def _find_in_cells(text: str, language: str) -> Designations:
    """Return the values of cells by the kind in their label: "Plan: Gold; Price: 20" is about the Gold plan."""
    cells = ((_find_kind(label.strip(), language), value) for label, value in _CELL.findall(text))
    marks = ((kind, fold_spelling(word.strip(",.()"))) for kind, value in cells if kind for word in value.split())
    return _collect((kind, mark) for kind, mark in marks if mark not in stop_words())


def _find_kind(word: str, language: str) -> str:
    """Return the term of a word that may name a kind of thing; "" for others, such as months and units."""
    stems = () if is_date(fold_spelling(word)) or is_unit(word.lower()) else content_terms(word, language)
    return stems[0] if len(stems) == 1 else ""


def _merge(one: Designations, other: Designations) -> Designations:
    return {kind: one.get(kind, frozenset()) | other.get(kind, frozenset()) for kind in one.keys() | other.keys()}


def _collect(*found: Iterator[tuple[str, str]]) -> Designations:
    kinds = defaultdict[str, set[str]](set)
    for pairs in found:
        for kind, mark in pairs:
            kinds[kind].add(mark)
    return {kind: frozenset(marks) for kind, marks in kinds.items()}
