"""Wikitables become a line per row, each cell with its headers."""

import pytest

from ingest.wikitext.page_layout import WikiTable

CITIES = """|+ style="x" | Cities
! City !! style="y" | Size
|-
| Ulm || align=right | 12
|- style="z"
| Bonn
| 30"""


def rows(text):
    table = WikiTable()
    for line in text.splitlines():
        table.feed(line)
    return table.rows()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CITIES, ["Cities", "City: Ulm; Size: 12", "City: Bonn; Size: 30"]),
        (
            "! Division !! Team\n|-\n! rowspan=2 | East\n| A\n|-\n| B\n|-\n| West || C",
            ["Division: East; Team: A", "Division: East; Team: B", "Division: West; Team: C"],
        ),
        (
            "! rowspan=2 | Year\n! colspan=2 | Men\n|-\n! Won !! Lost\n|-\n| 1990 || 3 || 4",
            ["Year: 1990; Men Won: 3; Men Lost: 4"],
        ),
        ("! colspan=2 | Output in 2004\n|-\n| Milk || 619", ["Output in 2004", "Milk: 619"]),
        ("| Anthem: || Kassaman", ["Anthem: Kassaman"]),
        ("| a || b || c", ["a; b; c"]),
        (
            "| Alkane || Formula || Boils at\n|-\n| Ethane || C2H6 || −89",
            ["Alkane: Ethane; Formula: C2H6; Boils at: −89"],
        ),
        ("! A !! B\n|-\n| x\n* one\n* two\n| y", ["A: x, one, two; B: y"]),
        ("! A !! B\n|-\n| || 1\n|-\n| || \n|-", ["B: 1"]),
    ],
    ids=[
        *("caption and headers", "row spans", "nested headers", "title across all columns", "label and value"),
        *("no headers", "unmarked header", "lists in cells", "empty cells and rows"),
    ],
)
def test_table_becomes_rows(text, expected):
    assert rows(text) == expected


def test_excessive_spans_are_limited():
    assert len(rows("|-\n| rowspan=999 colspan=999 | a\n" * 50)) == 50
