"""Read spreadsheets (.xlsx, .xls, .csv, .tsv; `open_document` has .ods): a section per sheet, a block per row."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import groupby

from ingest.readers import office, plain_text, table_rows
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.types import UnreadableDocument

_SHEET_LEVEL = 2
_LONGEST_CELL = 10_000
"""Characters of a cell that are read; a longer one holds data of a program, not text."""
_MOST_CELLS = 5_000_000
_MOST_BLANK = 50_000_000
_MOST_TEXT = 32 * 1024 * 1024
"""Characters. A few bytes of a workbook can represent a text in every cell, or a million blank ones."""
WIDEST_SHEET = 16_384  # columns
_DELIMITERS = ",;\t|"
_SAMPLE = 8192
_EARLIEST_YEAR, _LATEST_YEAR = 1900, 2100


def read_xlsx(content: bytes) -> ParsedDocument:
    from openpyxl import load_workbook  # type: ignore[import-untyped]  # it ships no types

    title, modified = office.read_properties(office.open_package(content, markup=office.LARGEST_UNPACKED))
    book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    sheets = (
        (sheet.title, ([format_value(cell.value, cell.number_format) for cell in row] for row in sheet.iter_rows()))
        for sheet in book.worksheets
        if sheet.sheet_state == "visible"
    )
    return ParsedDocument(items=read_sheets(sheets), fallback_title=title, date=modified)


def read_xls(content: bytes) -> ParsedDocument:
    import xlrd  # type: ignore[import-untyped]  # it ships no types

    try:
        book = xlrd.open_workbook(file_contents=content, logfile=io.StringIO())
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise UnreadableDocument("is protected by a password: save it without one") from error
        raise

    def value(cell: xlrd.sheet.Cell) -> object:
        if cell.ctype == xlrd.XL_CELL_DATE:
            return xlrd.xldate_as_datetime(cell.value, book.datemode)
        return bool(cell.value) if cell.ctype == xlrd.XL_CELL_BOOLEAN else cell.value

    sheets = (
        (sheet.name, ([format_value(value(cell)) for cell in row] for row in sheet.get_rows()))
        for sheet in book.sheets()
        if sheet.visibility == 0
    )
    return ParsedDocument(items=read_sheets(sheets))


def read_delimited(text: str) -> ParsedDocument:
    """Read rows of delimited text; the delimiter is guessed."""
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:_SAMPLE], _DELIMITERS)
    except csv.Error:
        dialect = csv.excel_tab if "\t" in text[:_SAMPLE] else csv.excel
    try:
        grid = [[format_value(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""), dialect)]
    except csv.Error as error:
        raise UnreadableDocument(f"is broken: {error}") from error
    return ParsedDocument(tuple(_read_grid(grid)))


def read_sheets(sheets: Iterable[tuple[str, Iterable[list[str]]]]) -> tuple[ContentItem, ...]:
    """Return the content of sheets, each a name and its rows. Raises `UnreadableDocument` if they are too large."""
    items: list[ContentItem] = []
    cells = blank = text = 0
    for name, rows in sheets:
        grid: list[list[str]] = []
        for row in rows:
            filled = row if any(row) else []
            blank += len(row) - len(filled)
            cells += len(filled)
            text += sum(map(len, filled))
            if cells > _MOST_CELLS or blank > _MOST_BLANK or text > _MOST_TEXT:
                limit = f"{_MOST_CELLS:,} cells, or {_MOST_TEXT // 2**20} MB of text"
                raise UnreadableDocument(f"holds more than {limit}: split it")
            grid.append(filled)
        if content := list(_read_grid(grid)):
            items += [Heading(_SHEET_LEVEL, name), *content]
    return tuple(items)


def _read_grid(grid: Iterable[Sequence[str]]) -> Iterator[ContentItem]:
    """Read the rows of a sheet. A blank row ends a table, and the next table may have its own header."""
    header: Sequence[str] = ()
    for filled, run in groupby(grid, key=any):
        if not filled:
            continue
        lines: Sequence[Sequence[str]] = list(run)
        if _is_header(lines):
            header, lines = table_rows.merge_columns(lines[0], lines[1:])
        elif (split := table_rows.split_header(lines))[0]:
            header, lines = split
        elif len(lines[0]) != len(header) or len(lines) > 1:
            header = ()
        yield from table_rows.make_row_blocks(header, lines)


def _is_header(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether the first of several rows is a header: most cells are filled, with different names or years."""
    filled = [cell for cell in lines[0] if cell]
    widest = max(sum(1 for cell in line if cell) for line in lines)
    return (
        len(lines) > 1
        and len(filled) * 2 > widest
        and len(set(filled)) == len(filled)
        and not all(_is_year(cell) for cell in filled)
        and all(_is_year(cell) or table_rows.is_column_name(cell) for cell in filled)
    )


def _is_year(cell: str) -> bool:
    return cell.isdecimal() and _EARLIEST_YEAR <= int(cell) <= _LATEST_YEAR


def format_value(value: object, number_format: str = "") -> str:
    """Format a cell's value as the sheet shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, int | float):
        return f"{value * 100:.10g}%" if "%" in number_format else f"{value:.15g}"
    text = str(value)
    line = " ".join(plain_text.strip_control_characters(text[:_LONGEST_CELL]).split())
    return line if len(text) <= _LONGEST_CELL else f"{line} …"
