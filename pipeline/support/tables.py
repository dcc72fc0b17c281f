"""Rows of tables, each written in a line as "Label: value; Label: value", and sentences that mix two of them.

Which cell stands in which row is all that a table says, and what no word tells: "ask Krüger about lost devices" has
every word of a table in which Krüger stands in one row and lost devices in another.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

from pipeline.support.aligning import Alignment
from pipeline.support.calendar import covers
from pipeline.support.facts import Facts, same_number
from pipeline.support.numbers import Bound, Number
from pipeline.support.polarity import scopes
from pipeline.support.reading import Reading, is_row, read_sentence
from pipeline.support.units import same_unit

_CELL = re.compile(r"\s*([^:;]{1,60}): ([^;]*)")
_LEAST_COVERAGE = 0.6
"""The share of a sentence's words of substance that the table must have."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one row has below one label; `items` are the parts of a list."""

    label: str
    said: str
    items: tuple[Reading, ...]


Row = tuple[Cell, ...]
Span = tuple[int, int]
_JOINS = frozenset({",", ";", "and", "but", "while"})


def joined_rows(alignment: Alignment, facts: Facts) -> tuple[str, str] | None:
    """Return what a sentence joins with another row's cell, and what its row has instead; None if it joins nothing.

    A sentence that has two cells of one column, or denies something, tells of several rows, and is left alone.
    """
    sentence = alignment.sentence
    if not is_row(alignment.source.text.text) or scopes(sentence).reached:
        return None
    labels = _labels(alignment.source)
    rows = [source for source in facts.sentences if is_row(source.text.text) and _labels(source) == labels]
    if not _covers(sentence, rows):
        return None
    table = [_cells(row) for row in rows]
    columns = [_mentions(sentence, [row[at] for row in table]) for at in range(len(labels))]
    several = any(len({table[row][at].said for row in rows}) > 1 for at, rows in enumerate(columns))
    return None if several else _apart(table, columns) or _exchanged_columns(sentence, table, columns)


def _apart(table: Sequence[Row], columns: Sequence[frozenset[int]]) -> tuple[str, str] | None:
    """Return the first two cells that stand in no row together: the second, and what stands beside the first."""
    told = [(at, rows) for at, rows in enumerate(columns) if rows]
    for place, (_, rows) in enumerate(told):
        for at, others in told[place + 1 :]:
            if rows.isdisjoint(others):
                return table[min(others)][at].said, table[min(rows)][at].said
    return None


def _exchanged_columns(
    sentence: Reading, table: Sequence[Row], columns: Sequence[frozenset[int]]
) -> tuple[str, str] | None:
    """Return a number that a sentence says by the label of another number of its row, and the label that it has."""
    told = [rows for rows in columns if rows]
    rows = frozenset.intersection(*told) if told else frozenset()
    numbered = [cell for cell in table[min(rows)] if any(item.numbers for item in cell.items)] if len(rows) == 1 else []
    for (first, last), one, other in product(_parts(sentence), numbered, numbered):
        stems = set(sentence.stems[first:last])
        if (
            one is other
            or _says_number(sentence, (first, last), other)
            or not _says_number(sentence, (first, last), one)
        ):
            continue
        own, others = _label_stems(one), _label_stems(other)
        if others - own and others - own <= stems and not (own - others) <= stems:
            return one.said, f"{one.label}: {one.said}"
    return None


def _parts(sentence: Reading) -> Iterator[Span]:
    """Yield the parts of a sentence that "and" or a mark sets apart."""
    low = sentence.text.low
    ends = [at for at, word in enumerate(low) if word in _JOINS]
    for start, end in pairwise([-1, *ends, len(low)]):
        yield start + 1, end


def _says_number(sentence: Reading, part: Span, cell: Cell) -> bool:
    """Whether a part of a sentence has a number of a cell, and no other number."""
    within = [number for number in sentence.numbers if part[0] <= number.first < part[1]]
    return len(within) == 1 and any(_same_quantity(one, within[0]) for item in cell.items for one in item.numbers)


def _label_stems(cell: Cell) -> frozenset[str]:
    return frozenset(key for key in read_sentence(cell.label, "en").stems if key)


def _mentions(sentence: Reading, column: Sequence[Cell]) -> frozenset[int]:
    """Return the rows whose cell of a column a sentence mentions."""
    return frozenset(row for row, cell in enumerate(column) if any(_says(sentence, item) for item in cell.items))


def _says(sentence: Reading, item: Reading) -> bool:
    """Whether a sentence has all numbers, dates and words of an item; of a name, the surname is enough."""
    spans = [*((one.first, one.last) for one in item.numbers), *((one.first, one.last) for one in item.dates)]
    valued = {at for span in spans for at in range(*span)}
    words = [at for at in range(len(item.text)) if at not in valued and item.stems[at] in item.content]
    if not words and not item.dates and not any(number.units or ":" in number.said for number in item.numbers):
        return False
    if not all(any(_same_quantity(one, other) for other in sentence.numbers) for one in item.numbers):
        return False
    if not all(any(covers(one, other) for other in sentence.dates) for one in item.dates):
        return False
    named = bool(words) and not valued and item.capitals.issuperset(words)
    return all(item.stems[at] in sentence.content for at in (words[-1:] if named else words))


def _same_quantity(one: Number, other: Number) -> bool:
    """Whether two numbers may be the same: no other unit, and not the least of one range and the most of another."""
    if {one.bound, other.bound} == {Bound.OVER, Bound.UNDER}:
        return False
    return same_number(one, other) and (same_unit(one.units, other.units) or not (one.units and other.units))


def _covers(sentence: Reading, rows: Iterable[Reading]) -> bool:
    """Whether a table has most of what a sentence says."""
    known = frozenset().union(*(row.content for row in rows))
    return len(sentence.content & known) >= _LEAST_COVERAGE * len(sentence.content)


def _labels(row: Reading) -> tuple[str, ...]:
    return tuple(cell.label for cell in _cells(row))


@lru_cache(maxsize=2048)
def _cells(row: Reading) -> Row:
    return tuple(_read(row))


def _read(row: Reading) -> Iterator[Cell]:
    for label, said in _CELL.findall(row.text.text):
        items = (part.strip() for part in said.split(", "))
        yield Cell(label, said.strip(), tuple(read_sentence(item, row.language) for item in items if item))
