"""Read the rows of data files, with errors that name the line and the field."""

import csv
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, TypeVar

from evaluation import EvaluationError

T = TypeVar("T")


class MalformedRow(Exception):
    """A row does not have the format of its file. `str()` gives its number and the reason."""

    def __init__(self, number: int, fault: str, unit: str = "line") -> None:
        super().__init__(f"{unit} {number}: {fault}")


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row of a file. Its methods raise `MalformedRow` if a field is missing or has another type."""

    line: int  # from 1
    fields: Mapping[str, Any]
    unit: str = "line"  # what is counted, such as dialogues

    def value(self, name: str) -> Any:
        if name not in self.fields:
            raise MalformedRow(self.line, f'"{name}" is missing', self.unit)
        return self.fields[name]

    def text(self, name: str) -> str:
        """Return a field that is a non-empty text."""
        value = self.value(name)
        if not isinstance(value, str) or not value.strip():
            raise self.unlike(name, "a text", value)
        return value.strip()

    def many(self, name: str) -> list[Any]:
        value = self.value(name)
        if not isinstance(value, list):
            raise self.unlike(name, "a list", value)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of texts, without the empty ones."""
        values = self.many(name)
        if not all(isinstance(text, str) for text in values):
            raise self.unlike(name, "a list of texts", values)
        return tuple(text.strip() for text in values if text.strip())

    def within(self, name: str) -> tuple["FileRow", ...]:
        """Return the objects in a field as rows. The field is one object, or a list or an object of objects."""
        value = self.value(name)
        listed = list(value.values()) if isinstance(value, dict) else value
        if isinstance(value, dict) and not any(isinstance(fields, dict) for fields in listed):
            return (replace(self, fields=value),)
        if not isinstance(listed, list) or not all(isinstance(fields, dict) for fields in listed):
            raise self.unlike(name, "objects", value)
        return tuple(replace(self, fields=fields) for fields in listed)

    def objects(self, name: str = "") -> Iterator[tuple[str, "FileRow"]]:
        """Yield the names and the objects of a field that is an object of objects, or of the row itself."""
        value = self.value(name) if name else self.fields
        if not isinstance(value, dict) or not all(isinstance(fields, dict) for fields in value.values()):
            raise self.unlike(name or "the file", "an object of objects", value)
        yield from ((key, replace(self, fields=fields)) for key, fields in value.items())

    def one_of(self, name: str, known: Mapping[str, T]) -> T:
        """Return the value in `known` for a field's text; case, hyphens, underscores and white space do not matter."""
        word = self.text(name)
        values = {_plain(key): value for key, value in known.items()}
        if _plain(word) not in values:
            raise self.unlike(name, f"one of {', '.join(known)}", word)
        return values[_plain(word)]

    def unlike(self, name: str, expected: str, value: object) -> MalformedRow:
        shown = repr(value)
        short = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return MalformedRow(self.line, f'"{name}" should be {expected}, and is {short}', self.unit)


def read_rows(path: Path) -> Iterator[FileRow]:
    """Yield the rows of a JSON-lines, CSV or TSV file. Raises `MalformedRow`, `OSError`, `UnicodeDecodeError`."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        opening = file.readline()
        file.seek(0)
        if opening.lstrip()[:1] in {"", "{", "["}:
            yield from _json_lines(file)
        elif "\t" in opening:
            yield from _columns(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        else:
            yield from _columns(csv.reader(file))


def _json_lines(file: TextIO) -> Iterator[FileRow]:
    for line, text in enumerate(file, start=1):
        if text.strip():
            fields = parse_json(text, line)
            if not isinstance(fields, dict):
                raise MalformedRow(line, "it is not a JSON object")
            yield FileRow(line, fields)


def _columns(rows: Any) -> Iterator[FileRow]:
    """Yield the rows after the header of a `csv.reader`. Its type has no public name, so `rows` is `Any`."""
    try:
        names: list[str] = next(rows, [])
        for cells in rows:
            if cells and len(cells) != len(names):
                raise MalformedRow(rows.line_num, f"it has {len(cells)} columns, and the header {len(names)}")
            if cells:
                yield FileRow(rows.line_num, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise MalformedRow(rows.line_num, f"it is not a table ({error})") from error


def parse_json(text: str, first: int = 1) -> Any:
    """Return the value of a JSON text that begins in line `first` of its file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedRow(first + error.lineno - 1, f"it is not JSON ({error})") from error


def read_items(path: Path, unit: str) -> Iterator[FileRow]:
    """Yield the items of a JSON list, as rows counted in `unit`; an item that is a list is in the field `turns`."""
    items = parse_json(path.read_text("utf-8-sig"))
    if not isinstance(items, list):
        raise MalformedRow(1, "it is not the beginning of a JSON list")
    for number, item in enumerate(items, start=1):
        yield FileRow(number, item if isinstance(item, dict) else {"turns": item}, unit)


@contextmanager
def explain_faults(path: Path, kind: type[EvaluationError], hint: str = "Fix the row, or remove it.") -> Iterator[None]:
    """Raise the errors of reading a file as errors of `kind`, which name the file."""
    try:
        yield
    except MalformedRow as error:
        raise kind(f"{path}, {error}.", hint=hint) from error
    except UnicodeDecodeError as error:
        raise kind(f"{path} is not text in UTF-8.", hint="Convert it to UTF-8.") from error
    except OSError as error:
        raise kind(f"{path} cannot be read: {error.strerror}.", hint=hint) from error


def _plain(word: str) -> str:
    return " ".join(word.replace("_", " ").replace("-", " ").split()).casefold()
