"""Render boxes: templates whose named arguments, one per line, become rows of "Label: value".

Arguments that are not facts (pictures, captions, sizes, colours) are recognized by whole words in their names, which
`box_names.txt` lists.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache, partial
from itertools import count
from types import MappingProxyType

from ingest.wikitext.markup_cleanup import BREAK, HOLE, PIPE, ROW, close_gaps
from ingest.wikitext.quantity_templates import format_position
from ingest.wikitext.wiki_site import load_names
from ingest.wikitext.word_templates import TemplateArguments, TemplateHandler
from storage.language.lazy_pattern import lazy_compile

_FILE_ENDING = lazy_compile(r"\.(?:jpe?g|png|svg|gif|tiff?|webp|ogg|oga|ogv|webm|mp3|pdf)\s*$", re.IGNORECASE)
_LOOK_VALUE = lazy_compile(
    r"[\W_]*|#[0-9a-f]{3,8}|x?\d+(?:x\d+)? ?px|[\d.]+(?:em|%;?)|(?:[a-z-]+:\s?[^;:]{1,40};\s?)+|"
    r"(?:width|height|font-size|font-weight|background|background-color|color|text-align):[^;:]{1,40};?",
    re.IGNORECASE,
)
_BARE_LOOK = lazy_compile(r"\d+(?:\.\d+)?|[0-9a-f]{6}", re.IGNORECASE)
_NAME_PART = lazy_compile(r"[^\W\d_]+")
_HUMP = lazy_compile(r"(?<=[a-z])([A-Z])(?=[a-z])")
_MONTHLY = lazy_compile(r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[ _](.+)", re.IGNORECASE)
_CRYPTIC = lazy_compile(r"[a-z]{1,3}(?:jan|feb|m[aä]r|mrz|apr|mai|may|jun|jul|aug|sep|okt|oct|nov|dez|dec)")
_POSITION_PART = lazy_compile(
    r"(lat|lon)g?_?(?:(d|deg|degrees?)|(m|min|minutes?)|(s|sec|seconds?)|(NS|EW|dir|direction))?"
)
_PARTNERS = (
    ("label", "data"), ("_label", "_data"), ("_title", "_name"), ("_title", ""), ("_type", "_name"),
    ("_event", "_date"), ("_name", "_info"), ("blank_name_sec", "blank_info_sec"), ("_header", "_data"),
    ("heading", "data"), ("titre", "texte"), ("_name", "_value"), ("label", "value"), ("city_", "pop_"),
)  # fmt: skip
_BEFORE = (("titre ", "nom "), ("titre ", ""), ("type ", "date "), ("type ", ""))
"""The same for languages that put it first."""
_LONGEST_VALUE = 1000  # characters; longer values are omitted
_LONGEST_LABEL = 80
_LIST_SIGNS = "*#:; \t"


def render_box(arguments: TemplateArguments) -> str:
    """Render the named arguments as rows, one per line, without pictures, colours and sizes.

    An argument may contain the label of another: `leader_title` that of `leader_name`, and `label1` that of `data1`.
    """
    names = arguments.names
    labels = _find_labels(names)
    labelling = set(labels.values())
    out = _render_climate(names) + _render_years(arguments.places)
    for name, value in names.items():
        if value and name not in labelling and (label := _make_label(name)):
            text = flatten_value(close_gaps(value) if HOLE in value else value)
            if text and len(text) < _LONGEST_VALUE and not _is_appearance(name, text):
                out.append(f"{ROW}{flatten_value(names[labels[name]]) if name in labels else label}: {text}")
        if ROW in value:
            out += [line for line in value.split("\n") if line.startswith(ROW)]
    out += _render_position(names)
    return "\n" + "\n".join(out) + "\n" if out else ""


def _is_appearance(name: str, value: str) -> bool:
    """Return whether a value only describes appearance, or names a file."""
    shown = value if len(value) == 1 else value.lower()  # "N" is north
    if _LOOK_VALUE.fullmatch(value) or _FILE_ENDING.search(value) or shown in _load_words("shown_as"):
        return True
    return bool(_BARE_LOOK.fullmatch(value)) and _is_measured(name)


def _render_climate(names: dict[str, str]) -> list[str]:
    """Render climate data as one row per quantity: `Jan high C` and `Feb high C` become "High C: Jan 3, Feb 4"."""
    found: dict[str, list[str]] = {}
    for name, value in names.items():
        if value and len(value) < _LONGEST_LABEL and (match := _MONTHLY.fullmatch(name)):
            found.setdefault(match[2], []).append(f"{match[1].capitalize()} {flatten_value(value)}")
    return [
        f"{ROW}{_make_label(quantity)}: {', '.join(values)}"
        for quantity, values in found.items()
        if _make_label(quantity)
    ]


def _render_years(places: tuple[str, ...]) -> list[str]:
    """Render `{{historical populations|1900|1250|1910|9046}}` as one row for each year."""
    pairs = list(zip(places[::2], places[1::2], strict=False))
    years = len(pairs) > 1 and all(len(year) == 4 and year.isdigit() for year, _ in pairs)  # noqa: PLR2004
    return [f"{ROW}{year}: {number}" for year, number in pairs] if years else []


def _render_position(names: dict[str, str]) -> list[str]:
    """Render the arguments of a position (`latd`, `latm`, `latNS`, or `lat_deg` and similar) as one row."""
    parts: dict[str, list[str]] = {"lat": [""] * 4, "lon": [""] * 4}
    for name, value in names.items():
        if value and name[:2] in ("la", "lo") and (match := _POSITION_PART.fullmatch(name)):
            parts[match[1]][max((match.lastindex or 0) - 2, 0)] = value
    text = format_position(parts["lat"], parts["lon"])
    return [f"{ROW}Coordinates: {text}"] if text else []


def flatten_value(value: str) -> str:
    """Put a value on one line. List items and line breaks are separated by commas; tables and rows are left out."""
    if "\n" in value:
        lines = (line.strip(_LIST_SIGNS) for line in value.split("\n") if line[:1] not in (ROW, "|", "!", PIPE, "{"))
        value = ", ".join(line for line in lines if line)
    if BREAK in value:
        parts = (part.strip(" ,") for part in value.split(BREAK))
        value = ", ".join(part for part in parts if part).replace(", (", " (").replace(":, ", ": ")
    return value.replace(",,", ",").strip(_LIST_SIGNS + ",")


def _find_labels(names: dict[str, str]) -> dict[str, str]:
    """Map the name of each argument that another argument labels to the name of that other argument."""
    found: dict[str, str] = {}
    for name, value in names.items():
        if value and len(value) <= _LONGEST_LABEL:
            for other in _labelled_names(name):
                if names.get(other):
                    found.setdefault(other, name)
                    break
    return found


@lru_cache(maxsize=16384)
def _labelled_names(name: str) -> tuple[str, ...]:
    """Return the names of arguments that this one may be the label of: `leader_title1` may label `leader_name1`."""
    stem = name.rstrip("0123456789")
    number = name[len(stem) :]
    pairs = ((ending, partner) for ending, partner in _PARTNERS if stem.endswith(ending))
    others = [stem[: -len(ending)] + partner + number for ending, partner in pairs]
    others += [after + name[len(before) :] for before, after in _BEFORE if name.startswith(before)]
    if stem == "rev":  # of a review: `rev1` and `rev1Score`
        others += (f"{name}Score", f"{name}score")
    return tuple(other for other in others if other != name)


@lru_cache(maxsize=16384)
def _make_label(name: str) -> str:
    """Make a label from a name: "Birth date" from `birth_date` or `BirthDate`; empty if it is not to be shown."""
    if _CRYPTIC.fullmatch(name) or _MONTHLY.fullmatch(name) or _POSITION_PART.fullmatch(name) or _is_styling(name):
        return ""
    words = " ".join(_HUMP.sub(r" \1", name.replace("km2", "km²").replace("_", " ").replace("-", " ")).split())
    stem = words.rstrip("0123456789").rstrip()
    words = stem if stem and len(words) - len(stem) <= 3 else words  # noqa: PLR2004 - a number of two digits, a space
    return words[:1].upper() + words[1:]


@cache
def _load_words(kind: str) -> frozenset[str]:
    return load_names("box_names")[kind]


def _split_name(name: str) -> list[str]:
    return [part.lower() for part in _NAME_PART.findall(_HUMP.sub(r" \1", name))]


def _is_styling(name: str) -> bool:
    """Return whether an argument is about a picture or appearance. Whole words count: `children` is not `child`."""
    words = _split_name(name)
    if not words:
        return not name.strip()
    if " ".join(words) in _load_words("unseen"):
        return True
    first, last = words[0], words[-1]
    if first in _load_words("picture") or last in _load_words("caption"):
        return True
    return _is_joined(first) if len(words) == 1 else _has_look(words, "look")


def _has_look(words: list[str], kind: str) -> bool:
    first, last, frames, looks = words[0], words[-1], _load_words("frame"), _load_words(kind)
    return len(words) > 1 and ((first in frames and last in looks) or (last in frames and first in looks))


def _is_joined(word: str) -> bool:
    looks = _load_words("look") | _load_words("measure")
    return any(word.endswith(look) and word[: -len(look)] in _load_words("frame") for look in looks)


@lru_cache(maxsize=4096)
def _is_measured(name: str) -> bool:
    words = _split_name(name)
    return bool(words) and (_has_look(words, "measure") or words[-1] in _load_words("colour"))


def is_no_box(name: str) -> bool:
    """Return whether a template, named in lower case, is not a box although it has many named arguments."""
    return name in _load_words("no_box_name") or not _load_words("no_box").isdisjoint(
        part.lower() for part in _NAME_PART.findall(name)
    )


def _make_rows(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "\n".join(f"{ROW}{label}: {flatten_value(value)}" for label, value in pairs if value)
    return f"\n{rows}\n" if rows else ""


def _episode(arguments: TemplateArguments) -> str:
    """Render `{{episode list|...}}`: its facts as a row, and its plot as a paragraph."""
    names = dict(arguments.names)
    story = names.pop("ShortSummary", "").strip()
    facts = "; ".join(
        f"{label}: {text}"
        for name, value in names.items()
        if (label := _make_label(name)) and (text := flatten_value(value)) and not _is_appearance(name, text)
    )
    return f"\n{ROW}{facts}\n\n{story}\n\n" if facts else f"\n\n{story}\n\n"


def _succession(arguments: TemplateArguments) -> str:
    title, years = arguments.named("title", "office"), arguments.named("years")
    office = f"{title} ({years})" if title and years else title or years
    pairs = (("Office", office), ("Preceded by", arguments.named("before")), ("Succeeded by", arguments.named("after")))
    return _make_rows(pairs)


def _clade(arguments: TemplateArguments) -> str:
    """Render `{{clade|1=A|2={{clade|...}}|label2=B}}` as (A, B: (...))."""
    groups: list[str] = []
    for number in count(1):
        label, group = arguments.names.get(f"label{number}", ""), arguments.at(number - 1)
        if not label and not group:
            break
        groups.append(flatten_value(f"{label}: {group}" if label and group else label or group))
    return f"({', '.join(groups)})" if groups else ""


def _medal(label: str, arguments: TemplateArguments) -> str:
    return _make_rows([(label, ", ".join(filter(None, arguments.places[:3])))])


BOX_HANDLERS: Mapping[str, TemplateHandler] = MappingProxyType({
    "episode": _episode, "succession": _succession, "clade": _clade,
    **{kind: partial(_medal, f"{kind.capitalize()} medal") for kind in ("gold", "silver", "bronze")},
    **{kind: partial(_medal, kind.capitalize()) for kind in ("competition", "sport")},
    "bars": lambda a: f"\n\n{a.named('title')}\n{a.named('bars', 'content')}\n",
    "cladogram": lambda a: f"\n\n{a.named('title')}\n{a.named('cladogram', 'clades', '1') or a.at(0)}\n",
})  # fmt: skip
"""By the kinds of `template_names.txt`."""
