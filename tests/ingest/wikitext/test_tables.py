"""Wikitables: each row says its cells with their headers, on one line."""

from ingest.wikitext.page_layout import WikiTable


def rows(text):
    """Feed the lines of a table and return its rows."""
    table = WikiTable()
    for line in text.strip().splitlines():
        table.feed(line.strip())
    return table.rows()


def test_cells_stand_with_their_headers():
    """In one line or in many, attributes left out."""
    text = """
        |+ style="x" | Cities
        ! City !! style="y" | Size
        |-
        | Ulm || align=right | 12
        |- style="z"
        | Bonn
        | 30
    """

    assert rows(text) == ["Cities", "City: Ulm; Size: 12", "City: Bonn; Size: 30"]


def test_cells_that_span_rows_stand_in_each():
    """A division of four teams is named in each of its rows."""
    text = "! Division !! Team\n|-\n! rowspan=2 | East\n| A\n|-\n| B\n|-\n| West || C"

    assert rows(text) == ["Division: East; Team: A", "Division: East; Team: B", "Division: West; Team: C"]


def test_headers_over_headers_are_one():
    """A header that spans columns stands before those below it."""
    text = "! rowspan=2 | Year\n! colspan=2 | Men\n|-\n! Won !! Lost\n|-\n| 1990 || 3 || 4"

    assert rows(text) == ["Year: 1990; Men Won: 3; Men Lost: 4"]


def test_a_header_across_the_whole_table_is_no_header_of_columns():
    """It says what follows."""
    assert rows("! colspan=2 | Output in 2004\n|-\n| Milk || 619") == ["Output in 2004", "Milk: 619"]


def test_without_headers_two_cells_are_label_and_value():
    """More cells are listed."""
    assert rows("| Anthem: || Kassaman") == ["Anthem: Kassaman"]
    assert rows("| a || b || c") == ["a; b; c"]


def test_a_first_row_of_words_above_numbers_is_headers():
    """Where none is marked."""
    assert rows("| Alkane || Formula || Boils at\n|-\n| Ethane || C2H6 || −89") == [
        "Alkane: Ethane; Formula: C2H6; Boils at: −89"
    ]


def test_lines_below_a_cell_belong_to_it():
    """Lists in cells are one line."""
    assert rows("! A !! B\n|-\n| x\n* one\n* two\n| y") == ["A: x, one, two; B: y"]


def test_empty_cells_and_rows_say_nothing():
    """A row without data is no row."""
    assert rows("! A !! B\n|-\n| || 1\n|-\n| || \n|-") == ["B: 1"]


def test_a_mistaken_span_does_not_grow_the_table():
    """Nine hundred rows and columns of one cell are a slip."""
    assert len(rows("|-\n| rowspan=999 colspan=999 | a\n" * 50)) == 50
