"""Files as rows, and a row as its reader sees it: fields by name, and a plain complaint about one that is not right.

A file has JSON lines, or a header and columns: parted by tabs, without quoting, or by commas, with it.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

T = TypeVar("T")


class MalformedRow(Exception):
    """A row is not as its form says. `str()` says where it began and what is wrong with it."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(f"line {line}: {fault}")


@dataclass(frozen=True, slots=True)
class Row:
    """A row, and the number of the line it stands in, from 1."""

    line: int
    fields: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a field that is a text with something in it.

        Raises:
            MalformedRow: it is missing or something else, as with all of these.
        """
        found = self._field(name)
        if not isinstance(found, str) or not found.strip():
            raise self.unlike(name, "a text", found)
        return found.strip()

    def many(self, name: str) -> list[Any]:
        """Return a field that is a list."""
        found = self._field(name)
        if not isinstance(found, list):
            raise self.unlike(name, "a list", found)
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of texts, without the empty ones."""
        found = self.many(name)
        if not all(isinstance(text, str) for text in found):
            raise self.unlike(name, "a list of texts", found)
        return tuple(text.strip() for text in found if text.strip())

    def within(self, name: str) -> tuple["Row", ...]:
        """Return a field that is an object, or a list or an object of objects, as rows of the same line."""
        found = self._field(name)
        listed = list(found.values()) if isinstance(found, dict) else found
        if isinstance(found, dict) and not any(isinstance(each, dict) for each in listed):
            return (Row(self.line, found),)
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise self.unlike(name, "objects", found)
        return tuple(Row(self.line, each) for each in listed)

    def one_of(self, name: str, known: Mapping[str, T]) -> T:
        """Return what a field's word stands for. Case, hyphens, underscores and white space make no difference."""
        word = self.text(name)
        found = {_plain(key): value for key, value in known.items()}
        if _plain(word) not in found:
            raise self.unlike(name, f"one of {', '.join(known)}", word)
        return found[_plain(word)]

    def unlike(self, name: str, wanted: str, found: object) -> MalformedRow:
        """Return the complaint that a field should be something else."""
        shown = repr(found)
        return MalformedRow(
            self.line, f'"{name}" should be {wanted}, and is {shown if len(shown) <= 60 else f"{shown[:57]}..."}'
        )

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise MalformedRow(self.line, f'"{name}" is missing')
        return self.fields[name]


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file.

    Raises:
        MalformedRow: a row is no JSON, or has more or fewer columns than the header.
        OSError: the file cannot be read.
        UnicodeDecodeError: it is no text in UTF-8.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        opening = file.readline()
        file.seek(0)
        if opening.lstrip()[:1] in {"", "{", "["}:
            yield from _json_lines(file)
        elif "\t" in opening:
            yield from _columns(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        else:
            yield from _columns(csv.reader(file))


def _json_lines(file: TextIO) -> Iterator[Row]:
    for line, text in enumerate(file, start=1):
        if text.strip():
            try:
                fields = json.loads(text)
            except ValueError as error:
                raise MalformedRow(line, f"it is no JSON ({error})") from error
            if not isinstance(fields, dict):
                raise MalformedRow(line, "it is no JSON object")
            yield Row(line, fields)


def _columns(rows: Any) -> Iterator[Row]:
    """Yield the rows of a `csv.reader`, whose type has no public name, below its header."""
    try:
        names: list[str] = next(rows, [])
        for cells in rows:
            if cells and len(cells) != len(names):
                raise MalformedRow(rows.line_num, f"it has {len(cells)} columns, and the header {len(names)}")
            if cells:
                yield Row(rows.line_num, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise MalformedRow(rows.line_num, f"it is no table ({error})") from error


def _plain(word: str) -> str:
    return " ".join(word.replace("_", " ").replace("-", " ").split()).casefold()
