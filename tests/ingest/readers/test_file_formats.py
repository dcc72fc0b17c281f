"""A file's bytes and name become a page: titles, dates, languages, encodings and reasons for refusals."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from ingest.readers import file_formats, plain_text
from ingest.types import Block, Section, UnreadableDocument
from storage.types import PassageKind

CHANGED = datetime(2020, 1, 1, tzinfo=UTC)


def page(text, name="a.md", **kwargs):
    """Read a text as a file."""
    return file_formats.read_file(text.encode() if isinstance(text, str) else text, name, **kwargs)


def test_sections_are_nested_by_headings():
    text = "# Leave\n\nIntro.\n\n## Days\n\nThirty.\n\n### Half days\n\nAlso.\n\n## Illness\n\nCall.\n"

    assert page(text).title == "Leave"
    assert page(text).sections == (
        Section((), (Block("Intro."),)),
        Section(("Days",), (Block("Thirty."),)),
        Section(("Days", "Half days"), (Block("Also."),)),
        Section(("Illness",), (Block("Call."),)),
    )


def test_headings_without_text_become_text():
    assert page("# Values\n\n## We care\n\n## We share\n").sections == (
        Section((), (Block("We care"), Block("We share"))),
    )


def test_list_is_joined_to_its_introduction():
    assert page("We offer:\n\n- tea\n- milk\n").sections[0].blocks == (Block("We offer:\n- tea\n- milk"),)


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ("---\ntitle: Given\n---\n# Heading\n\nText.", "a.md", "Given"),
        ("Text.\n\n# Heading\n\nText.", "a.md", "Heading"),
        ("## Alone\n\nText.\n\n### Below\n\nText.", "a.md", "Alone"),
        ("## One\n\nText.\n\n## Two\n\nText.", "team/on-call_rota.md", "On call rota"),
        ("Text.", "team/README.md", "Team"),
        ("Text.", "index.md", "Index"),
        ("<title>Page – Site</title><p>Text.", "a.html", "Page"),
    ],
)
def test_title_comes_from_metadata_headings_or_name(text, name, title):
    assert page(text, name).title == title


def test_missing_date_and_revision_come_from_the_file():
    plain = page("Some text.", url="https://x.org/a", revision="sha256:1", modified=CHANGED)
    dated = page("---\ndate: 2024-05-06\nversion: 2\n---\nText.", revision="sha256:1", modified=CHANGED)

    assert (plain.url, plain.revision, plain.date) == ("https://x.org/a", "sha256:1", CHANGED)
    assert (dated.revision, dated.date) == ("2", datetime(2024, 5, 6, tzinfo=UTC))


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("31.12.2019", (2019, 12, 31)),
        ("03.02.2024", (2024, 2, 3)),
        ("2024/02/03", (2024, 2, 3)),
        ("3 February 2024", (2024, 2, 3)),
        ("3rd Feb 2024", (2024, 2, 3)),
        ("Feb 3, 2024", (2024, 2, 3)),
        ("Sept. 3rd, 2024", (2024, 9, 3)),
        ("february 3 2024", (2024, 2, 3)),
        ("2024-02", (2024, 2, 1)),
        ("2024-2-3", (2024, 2, 3)),
        ("Sat, 03 Feb 2024 00:00:00 +0000", (2024, 2, 3)),
    ],
)
def test_written_dates_are_parsed(written, date):
    assert page(f"---\ndate: {written}\n---\nText.", modified=CHANGED).date == datetime(*date, tzinfo=UTC)
    assert page(f":date: {written}\n\nText.\n", "a.rst", modified=CHANGED).date == datetime(*date, tzinfo=UTC)


@pytest.mark.parametrize(
    "written", ["next tuesday", "31.02.2024", "02/03/2024", "3 Smarch 2024", "2024-13", "TBD", "yes"]
)
def test_unparsable_stated_date_is_none(written):
    assert page(f"---\ndate: {written}\n---\nText.", modified=CHANGED).date is None
    assert page(f":date: {written}\n\nText.\n", "a.rst", modified=CHANGED).date is None
    both = f"---\nupdated: {written}\ndate: 2019-12-31\n---\nText."
    assert page(both, modified=CHANGED).date == datetime(2019, 12, 31, tzinfo=UTC)


def test_empty_date_field_is_ignored():
    assert page("---\ndate:\n---\nText.", modified=CHANGED).date == CHANGED


def test_language_is_detected_from_prose():
    text = (
        "```\nfor if while return import class\n```\n\nDie Mitarbeiterinnen und Mitarbeiter haben dreißig Tage Urlaub."
    )

    assert page(text).language == "de"


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (b"", "a.md", "is empty"),
        (b" \n\t", "a.txt", "is empty"),
        (b"---\ntitle: x\n---\n", "a.md", "holds no text"),
        (b"<!-- nothing -->", "a.html", "holds no text"),
        (b"abc", "a.docx", "broken"),
        (b"PK\x03\x04abc", "a.xlsx", "broken"),
        (b"abc", "a.msg", "valid Outlook file"),
        (b"<a>", "a.xml", "valid XML file"),
        (b"{", "a.json", "broken JSON"),
        (b"a\x00b\xff", "a.txt", "binary"),
        (b"x", "a.png", "pictures are not read"),
        (b"x", "a.zip", "unpack it"),
        (b"x", "a.doc", "save it as .docx"),
        (b"x", "a.xyz", ".xyz files are not read"),
    ],
)
def test_unreadable_file_has_a_reason(content, name, reason, capfd):
    with pytest.raises(UnreadableDocument, match=reason):
        page(content, name)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", [name for name in file_formats.load_formats() if name])
@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"<", b"%PDF-1.7\n", b"PK\x05\x06" + bytes(18), b"\xff\xfe"])
def test_broken_files_of_every_format_fail_quietly(name, content, capfd):
    with suppress(UnreadableDocument):
        assert page(content, f"a{name}").sections

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "shift_jis", "euc_jp"])
def test_encoding_of_text_is_detected(encoding):
    content = "名前,年齢\n佐藤太郎,30\n三木英子,25\n".encode(encoding)

    assert page(content, "a.csv").sections[0].blocks[0] == Block("名前: 佐藤太郎; 年齢: 30", PassageKind.TABLE)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Stadt;PLZ;Leitung\nKöln;50667;Jörg Groß\n", "cp1252"),
        ("Wir sind über Mittag im Büro.", "cp1252"),
        ("Café", "latin-1"),
        ("Prix : 30 € – réservé aux employés", "cp1252"),
        ("“Hello”, it’s fine…", "cp1252"),
        ("Zażółć gęślą jaźń, proszę o urlop.", "iso8859-2"),
        ("Zażółć gęślą jaźń, proszę o urlop.", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy", "iso8859-2"),
        ("Miasto;Kod\nŁódź;90-001", "cp1250"),
        ("休暇は三十日です。", "shift_jis"),
        ("名前,email\n佐藤太郎,sato@example.org\n三木英子,miki@example.org", "shift_jis"),
        ("姓名,年龄\n张伟,30", "gb18030"),
        ("员工每年有三十天假期。", "gb18030"),
        ("員工每年有三十天假期。", "big5"),
        ("직원은 매년 30일의 휴가를 받습니다.", "euc_kr"),
        ("Отпуск длится тридцать дней.", "koi8-r"),
        ("Имя;Город\nИван;Москва", "koi8-r"),
        ("Отпуск длится тридцать дней.", "cp1251"),
        ("Η άδεια είναι τριάντα ημέρες.", "cp1253"),
    ],
)
def test_legacy_encoding_of_short_text_is_guessed(text, encoding):
    assert plain_text.decode_text(text.encode(encoding)) == text


def test_all_line_ends_are_accepted():
    assert page(b"One\r\n\r\nTwo\r\rThree\n\nFour", "a.txt").sections[0].blocks == tuple(
        map(Block, ("One", "Two", "Three", "Four"))
    )


@pytest.mark.parametrize(
    ("name", "content", "dated"),
    [
        ("a.md", b"---\ntitle: x\nlast_updated: 2024-01-01\n---\n", True),
        ("a.md", b"---\ntitle: x\n---\ndate: 2024-01-01\n", True),
        ("a.md", b"Date: today\n", False),
        ("a.pdf", b"%PDF", True),
        ("a.txt", b"x", False),
    ],
)
def test_is_dated_finds_stated_dates(name, content, dated):
    assert file_formats.is_dated(name, content) is dated
