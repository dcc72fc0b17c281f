"""Stage 2's reply: what a passage says to the point, each bullet with the sentences it rests on. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import UnreadableReply
from pipeline.forms import Form
from pipeline.parsing.reading import (
    INTEGER,
    STRING,
    field,
    is_nothing,
    items,
    lines,
    list_schema,
    numbers,
    object_schema,
    plain,
    whole_numbers,
)

_LIST = r"\d{1,4}(?:\s*(?:[,;&–-]|and)\s*\d{1,4})*"
_BEHIND = re.compile(rf"\s*(?:[\[(](?:(?:from )?sentences?:?\s*)?({_LIST})[\])]\s*)+[.]?\s*$", re.IGNORECASE)
_BEFORE = re.compile(rf"\[({_LIST})\]:?\s*")
_SCHEMA = object_schema(bullets=list_schema(object_schema(text=STRING, sentences=list_schema(INTEGER))))


@dataclass(frozen=True, slots=True)
class Bullet:
    """A statement taken from a passage, and the numbers of the sentences that say it; none if it names none."""

    text: str
    sentences: tuple[int, ...]


def bullets(count: int) -> Form[tuple[Bullet, ...]]:
    """Return the form of bullets over `count` numbered sentences; no bullets where nothing is to the point."""
    return Form(
        _SCHEMA,
        from_json=lambda found: _checked([_of_json(one, count) for one in field(found, "bullets", list)]),
        from_text=lambda text: _from_text(text, count),
    )


def _of_json(found: Any, count: int) -> Bullet:
    return Bullet(plain(field(found, "text", str)), whole_numbers(field(found, "sentences", list), count))


def _from_text(text: str, count: int) -> tuple[Bullet, ...]:
    if text.strip() and is_nothing(text):
        return ()
    found = _checked([_of_line(line, count) for line in items(text) or filter(_BEHIND.search, lines(text))])
    if not found and not any(map(is_nothing, lines(text))):
        raise UnreadableReply("there is no list of bullets in it, and no “None” either")
    return found


def _of_line(line: str, count: int) -> Bullet:
    behind, before = _BEHIND.search(line), _BEFORE.match(line)
    if behind:
        return Bullet(line[: behind.start()].strip(), numbers(behind[0], count))
    if before:
        return Bullet(line[before.end() :].strip(), numbers(before[1], count))
    return Bullet(line, ())


def _checked(found: Sequence[Bullet]) -> tuple[Bullet, ...]:
    kept = tuple(bullet for bullet in found if not is_nothing(bullet.text))
    if kept and not any(bullet.sentences for bullet in kept):
        raise UnreadableReply("no bullet names a numbered sentence that it rests on")
    return kept
