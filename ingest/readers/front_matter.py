"""Read front matter, which is YAML or TOML before the text of a page, or a line at the top that dates the page."""

import itertools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import yaml

from ingest.readers import value_parsers
from ingest.readers.parsed_document import ParsedDocument
from storage.language.lazy_pattern import lazy_compile

_YAML_BLOCK = lazy_compile(r"\A---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML_BLOCK = lazy_compile(r"\A\+\+\+[ \t]*\n(.*?\n)??\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = lazy_compile(r"^[A-Za-z_][\w -]*:", re.MULTILINE)

DATE_FIELDS = ("updated", "last_updated", "lastmod", "last_modified", "modified", "date")
"""Fields that date the last change of a page, the most reliable first."""
REVISION_FIELDS = ("revision", "version")
_KNOWN_FIELDS = (*DATE_FIELDS, *REVISION_FIELDS, "title", "language", "lang", "locale")

_LARGEST_FRONT_MATTER = 16 * 1024  # bytes
_HEAD_LINES = 8
"""Lines at the top that are searched for a date: title, underline and authors may come before it."""
_LONGEST_TITLE, _SENTENCE_ENDS = 120, (".", "!", "?", ":", ";", ",")
_FIELD_LINE = lazy_compile(r"(?P<name>[^\W\d_][\w .'’-]{0,30}?) ?:(?: +(?P<value>\S.*))?")
_UPDATED = frozenset({
    *("updated", "last updated", "last update", "updated on", "last updated on", "modified", "last modified"),
    *("last changed", "last reviewed", "as of", "stand", "aktualisiert", "zuletzt aktualisiert", "letzte änderung"),
    *("letzte aktualisierung", "zuletzt geändert", "actualizado", "última actualización", "última modificación"),
    *("mis à jour", "mise à jour", "dernière mise à jour", "aggiornato", "aggiornato il", "ultimo aggiornamento"),
    *("atualizado", "última atualização", "bijgewerkt", "laatst bijgewerkt"),
})  # fmt: skip
"""Labels of the date of a page's last change, and of nothing else."""
_DATED = frozenset({"date", "dated", "datum", "fecha", "data"})
"""Labels of the date of a page, or of an event."""
_ABOUT_PAGES = frozenset({
    *("author", "authors", "by", "from", "to", "cc", "subject", "re", "owner", "status", "version", "revision"),
    *("title", "autor", "autorin", "verfasser", "verfasserin", "von", "an", "betreff", "auteur", "autore"),
})  # fmt: skip
"""Labels of other fields of a page or memo, but not of an invitation."""


def read_with_fields(
    text: str, read: Callable[[str], ParsedDocument], *, any_fields: bool = True, date_line: bool = False
) -> ParsedDocument:
    """Parse a text with `read`, and add the title, date, revision and language that its front matter states.

    Unless `any_fields`, a block without any of these is read as text, as ordinary text may be between two horizontal
    rules. With `date_line`, a line at the top may state the date, if the front matter does not.
    """
    fields, body = split_front_matter(text)
    if not any_fields and not stated_fields(fields, _KNOWN_FIELDS):
        fields, body = {}, text
    stated = stated_fields(fields, DATE_FIELDS)
    written, body = _take_date_line(body) if date_line and not stated else (None, body)
    reading = read(body)
    stated_date = value_parsers.parse_first_date(stated) if stated else None
    revision = first_field(fields, REVISION_FIELDS)
    return replace(
        reading,
        title=title_field(fields) or reading.title,
        date=stated_date or written or reading.date,
        dated=bool(stated or written) or reading.dated,
        revision=reading.revision if revision is None else str(revision),
        language=language_field(fields) or reading.language,
    )


def states_date(head: str) -> bool:
    """Return whether a line at the top of a text states the date of the text."""
    return _take_date_line(split_front_matter(head)[1])[0] is not None


def _take_date_line(text: str) -> tuple[datetime | None, str]:
    """Return the date of a text that one of its first lines states, and the text without that line.

    If the line says when the page was written, and not when it was updated, it stays as a paragraph of its own. Only a
    title and other fields of a page may precede it. "Date: 14 July 2026" next to "Place: the garden" dates an event,
    not the page.
    """
    lines, titled = text.split("\n", _HEAD_LINES), False
    for at, line in enumerate(lines[:_HEAD_LINES]):
        plain = line.replace("**", "").strip(" \t*_")
        field = _FIELD_LINE.fullmatch(plain)
        name = " ".join(field["name"].casefold().split()) if field else ""
        if field and name in _UPDATED | _DATED:
            day = value_parsers.parse_full_date((field["value"] or "").strip(" *_."))
            if day and name in _UPDATED:
                return day, "\n".join([*lines[:at], "", *lines[at + 1 :]])
            if day and _is_alone(lines, at):
                return day, "\n".join([*lines[:at], "", lines[at], "", *lines[at + 1 :]])
            return None, text
        if not plain or set(plain) <= {"=", "-"} or name in _ABOUT_PAGES:
            continue
        if titled or len(plain) > _LONGEST_TITLE or plain.endswith(_SENTENCE_ENDS):
            break
        titled = True
    return None, text


def _is_alone(lines: Sequence[str], at: int) -> bool:
    """Return whether the paragraph of the line at index `at` has no field of an event, such as a place."""
    neighbours = (
        *itertools.takewhile(str.strip, lines[at + 1 :]),
        *itertools.takewhile(str.strip, reversed(lines[:at])),
    )
    fields = (_FIELD_LINE.fullmatch(line.strip(" \t*_")) for line in neighbours)
    return all(field["name"].casefold() in _ABOUT_PAGES | _UPDATED for field in fields if field)


def split_front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the fields that have plain values, and the text after them. Names are in lower case, with `_` for `-`."""
    fields, rest = load_front_matter(text)
    return {name: value for name, value in fields.items() if isinstance(value, str | int | float | date)}, rest


def read_fields(content: bytes) -> Mapping[str, Any]:
    """Read the front matter of a file's bytes; empty if there is none in the first 16 KiB."""
    head = content[:_LARGEST_FRONT_MATTER].removeprefix(b"\xef\xbb\xbf")
    if not head.startswith((b"---", b"+++")):
        return {}
    return load_front_matter(head.decode("utf-8", "replace").replace("\r\n", "\n"))[0]


def load_front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    """Return all fields, named as by `split_front_matter`, and the text after them."""
    if match := _YAML_BLOCK.match(text):
        fields = _load_fields(match[1] or "")
    elif match := _TOML_BLOCK.match(text):
        fields = _load_toml(match[1] or "")
    else:
        return {}, text
    if fields is None:
        return {}, text
    return {str(name).lower().replace("-", "_"): value for name, value in fields.items()}, text[match.end() :]


def first_field(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first value that is not empty among the fields with these names; None if all are empty."""
    return next(iter(stated_fields(fields, names)), None)


def stated_fields(fields: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    """Return all values of the fields with these names that are not empty, in the order of the names."""
    return [fields[name] for name in names if fields.get(name) not in (None, "")]


def _load_fields(source: str) -> Mapping[str, Any] | None:
    """Parse the fields of front matter; None if the block is ordinary text between two horizontal rules."""
    try:
        fields = value_parsers.load_yaml(source)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {} if _FIELD.match(source) else None
    if fields is None:
        return {}
    return fields if isinstance(fields, dict) else None


def _load_toml(source: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def title_field(fields: Mapping[str, Any]) -> str:
    """Return the title; empty if it contains a template tag, whose output is unknown."""
    title = " ".join(str(fields.get("title") or "").split())
    return "" if "{{" in title or "{%" in title else title


def language_field(fields: Mapping[str, Any]) -> str:
    """Return the two letters of the language; empty if not stated."""
    language = str(first_field(fields, ("language", "lang", "locale")) or "")
    return language[:2].lower() if re.fullmatch(r"[A-Za-z]{2}([-_].*)?", language) else ""
