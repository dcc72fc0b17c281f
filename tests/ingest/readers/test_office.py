"""Word, PowerPoint and Excel files."""

import datetime as dt
import io
import zipfile

import openpyxl
import pytest
from openpyxl.styles.numbers import FORMAT_PERCENTAGE
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from ingest.readers import html_tree, office, spreadsheet, table_rows
from ingest.readers.parsed_document import Heading
from ingest.types import Block, UnreadableDocument
from storage.types import PassageKind
from tests.ingest.files import docx, paragraph, zipped


def test_word_document_is_read_by_sections():
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    row = "<w:tr>" + cell + cell + "</w:tr>"
    body = (
        paragraph("Leave", "Title")
        + paragraph("Numbers", "heading1")
        + paragraph("Thirty days.")
        + f"<w:tbl>{row.format('Team', 'Days')}{row.format('Sales', '30')}</w:tbl>"
    )

    reading = office.read_word(docx(body, title="Old title", modified="2024-05-06T07:08:09Z"))

    assert reading.items == (
        Heading(1, "Leave"),
        Heading(1, "Numbers"),
        Block("Thirty days."),
        Block("Team: Sales; Days: 30", PassageKind.TABLE),
    )
    assert reading.fallback_title == "Old title"
    assert reading.date == dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)


def test_word_equations_become_text():
    run = "<m:r><m:t>{}</m:t></m:r>"
    fraction = f"<m:f><m:num>{run.format('a+b')}</m:num><m:den>{run.format('2')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{run.format('x')}</m:e><m:sup>{run.format('2')}</m:sup></m:sSup>"
    math = f"<m:oMathPara><m:oMath>{run.format('y=')}{fraction}{run.format('+')}{power}</m:oMath></m:oMathPara>"

    assert office.read_word(docx(f"<w:p><w:r><w:t>So:</w:t></w:r>{math}</w:p>")).items == (Block("So: y=(a+b)/2+x^2"),)


def test_each_slide_becomes_a_section():
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[0])
    first.shapes.title.text = "Plans"
    second = deck.slides.add_slide(deck.slide_layouts[1])
    second.shapes.title.text = "Prices"
    second.placeholders[1].text = "Basic is free.\nTeam costs 5."
    table = second.shapes.add_table(2, 2, Inches(1), Inches(5), Inches(4), Inches(1)).table
    for n, text in enumerate(["Plan", "Price", "Team", "5"]):
        table.cell(n // 2, n % 2).text = text
    second.notes_slide.notes_text_frame.text = "Mention the discount."
    reading = office.read_slides(save(deck))

    assert reading.title == "Plans"
    assert reading.items == (
        Heading(2, "Plans"),
        Heading(2, "Prices"),
        Block("- Basic is free.\n- Team costs 5."),
        Block("Plan: Team; Price: 5", PassageKind.TABLE),
        Block("Notes: Mention the discount."),
    )


def make_deck(*titles):
    deck = Presentation()
    for title in titles:
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    return deck


def save(deck):
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["barChart", "bar3DChart", "surfaceChart", "ofPieChart"])
def test_charts_become_rows(kind):
    deck = make_deck("Sales")
    values = CategoryChartData()
    values.categories = ["Q1", "Q2"]
    values.add_series("North", (10.5, 12))
    values.add_series("South", (7, None))
    deck.slides[0].shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, Inches(3), Inches(5), Inches(3), values)
    with zipfile.ZipFile(io.BytesIO(save(deck))) as archive:
        parts = {name: archive.read(name).replace(b"barChart", kind.encode()) for name in archive.namelist()}

    assert office.read_slides(zipped(parts)).items == (
        Heading(2, "Sales"),
        Block("Q1; North: 10.5; South: 7", PassageKind.TABLE),
        Block("Q2; North: 12", PassageKind.TABLE),
    )


@pytest.mark.parametrize("titles", [("Closed on 24 December",), ("Our year", "Hire ten")])
def test_slide_titles_without_text_become_text(titles):
    assert office.read_slides(save(make_deck(*titles))).items == tuple(map(Block, titles))


def test_word_checkboxes_and_nested_tables_are_read():
    box = "<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val='{}'/></w14:checkbox></w:sdtPr><w:sdtContent/></w:sdt>"
    ticked = "".join(f"<w:p>{box.format(n)}<w:r><w:t>{text}</w:t></w:r></w:p>" for n, text in ((1, "Yes"), (0, "No")))
    cell = "<w:tc>{}</w:tc>"
    row = "<w:tr>{}{}</w:tr>"
    words = {text: cell.format(paragraph(text)) for text in ("Team", "Ask", "IT", "Topic", "Person", "Laptops", "Ann")}
    inner = row.format(words["Topic"], words["Person"]) + row.format(words["Laptops"], words["Ann"])
    nested = cell.format(f"<w:tbl>{inner}</w:tbl><w:p/>")
    outer = f"<w:tbl>{row.format(words['Team'], words['Ask'])}{row.format(words['IT'], nested)}</w:tbl>"

    assert office.read_word(docx(ticked + outer)).items == (
        Block("✓ Yes"),
        Block("☐ No"),
        Block("Team: IT; Ask: Topic: Laptops; Person: Ann", PassageKind.TABLE),
    )


@pytest.mark.parametrize(
    ("grid", "rows"),
    [
        (
            [
                "|Years ended May 31,||||",
                "|2023|||2022|",
                "(in millions)|||||",
                "Sales|$|1,200||$|1,100",
                "Loss|$|(30|)||(45)",
            ],
            [
                "Sales (in millions); Years ended May 31, 2023: $1,200; 2022: $1,100",
                "Loss (in millions); Years ended May 31, 2023: $(30); 2022: (45)",
            ],
        ),
        (["(in %)|2023|2022", "Growth|4.1|", "Share||3"], ["Growth (in %); 2023: 4.1", "Share (in %); 2022: 3"]),
        (["|Basic|Team", "Price|0|5", "Seats|1|20"], ["Price; Basic: 0; Team: 5", "Seats; Basic: 1; Team: 20"]),
        (["|1|2", "A|x|y", "B|z|w"], ["1; 2", "A; x; y", "B; z; w"]),
        (["||a|b", "x|y|z|"], ["a; b", "x; y; z"]),
        (["Fee|$|5", "Tax|$|1"], ["Fee; $5", "Tax; $1"]),
        (["Name|Notes|Age", "Ann||30", "Bob||25"], ["Name: Ann; Age: 30", "Name: Bob; Age: 25"]),
        (["Sign|Name", "$|Dollar", "%|Percent"], ["Sign: $; Name: Dollar", "Sign: %; Name: Percent"]),
        (["||EURO|GBP", "|Day|EUR|GBP", "FY|May|0.9|0.7"], ["FY; Day: May; EURO EUR: 0.9; GBP: 0.7"]),
    ],
)
def test_financial_tables_join_heads_and_signs(grid, rows):
    split = table_rows.split_header([line.split("|") for line in grid])

    assert [block.text for block in table_rows.make_row_blocks(*split)] == rows


def test_numbers_spanning_sign_columns_share_a_column():
    head = "<tr><td></td><td></td><td colspan=3>Sept 28,<br>2024</td><td></td><td colspan=3>Sept 30,<br>2023</td></tr>"
    cells = (
        "<td>Sales</td><td></td><td>$</td><td>294,866</td><td></td><td></td><td>$</td><td>298,085</td><td></td>",
        "<td>Tax</td><td></td><td colspan=2>(29,749</td><td>)</td><td></td><td colspan=2>(16,741</td><td>)</td>",
    )

    items = html_tree.read_html(f"<table>{head}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")

    assert [item.text for item in items] == [
        "Sales; Sept 28, 2024: $294,866; Sept 30, 2023: $298,085",
        "Tax; Sept 28, 2024: (29,749); Sept 30, 2023: (16,741)",
    ]


def test_visible_sheets_become_sections_of_rows():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Offices"
    for row in (
        ["City", "Opened", "Share", "Open"],
        ["Graz", dt.datetime(2019, 3, 1), 0.25, True],  # noqa: DTZ001 - a sheet knows no zones
        [],
        ["Year", 2023, 2024],
        ["Visits", 10.5, 1200],
        ["Notes", "so " * 4_000],
    ):
        sheet.append(row)
    sheet["C2"].number_format = FORMAT_PERCENTAGE
    book.create_sheet("Secret").append(["a", "b"])
    book["Secret"].sheet_state = "hidden"
    file = io.BytesIO()
    book.save(file)

    assert spreadsheet.read_xlsx(file.getvalue()).items == (
        Heading(2, "Offices"),
        Block("City: Graz; Opened: 2019-03-01; Share: 25%; Open: yes", PassageKind.TABLE),
        Block("Year: Visits; 2023: 10.5; 2024: 1200", PassageKind.TABLE),
        Block(f"Year: Notes; 2023: {'so ' * 3_333}s …", PassageKind.TABLE),
    )


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_detected(delimiter):
    rows = [["Name", "City", "Age"], ["Ann", "Graz", "30"], ["Bob", "Linz", "25"]]

    items = spreadsheet.read_delimited("\n".join(delimiter.join(row) for row in rows)).items

    assert items[0] == Block("Name: Ann; City: Graz; Age: 30", PassageKind.TABLE)


@pytest.mark.parametrize("read", [office.read_word, office.read_slides, spreadsheet.read_xlsx])
def test_protected_file_is_refused(read):
    with pytest.raises(UnreadableDocument, match="password"):
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))


def test_archive_with_large_parts_is_refused():
    content = zipped({f"word/{n}.xml": bytes(2**20) for n in range(9)})

    assert len(content) < 2**16
    with pytest.raises(UnreadableDocument, match="unpacks to more than 8 MB"):
        office.open_package(content, largest=8 * 2**20)
