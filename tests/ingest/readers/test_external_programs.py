"""Scanned pages and older formats, read by fake programs."""

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pptx import Presentation

from ingest.readers import file_formats, pdf
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms, RecognizedWord
from ingest.readers.parsed_document import Heading
from ingest.sandbox import Sandbox
from ingest.types import Block, SourceUnavailable, UnreadableDocument
from storage.types import PassageKind
from tests.ingest import files
from tests.ingest.sandbox.test_sandbox import PATIENCE, has_ended, wait_for

SCANS = ReaderPrograms(ocr=True, ocr_languages=("eng", "deu"))
TESSERACT = """#!{python}
import sys
assert sys.argv[1:] == ["stdin", "stdout", "-l", "eng+deu", "tsv"], sys.argv
head, pixels = sys.stdin.buffer.read().split(b" 255\\n", 1)
magic, width, height = head.split()
assert magic == b"P5" and int(width) * int(height) == len(pixels)
print("level page_num block_num par_num line_num word_num left top width height conf text".replace(" ", "\\t"))
page = (((100, "Item"), (900, "Price")), ((100, "Tea"), (900, "5")), ((100, "*"), (130, "Cash")))
for line, words in enumerate(page):
    for number, (left, text) in enumerate(words):
        print(5, 1, 1, 1, line, number, left, 100 + 60 * line, 20 * len(text), 30, 96.5, text, sep="\\t")
"""
SOFFICE = """#!{python}
import pathlib, shutil, sys
target, folder, source = sys.argv[-4], pathlib.Path(sys.argv[-2]), pathlib.Path(sys.argv[-1])
profile = next(part for part in sys.argv if part.startswith("-env:UserInstallation=file://"))
assert "DisableMacrosExecution" in (pathlib.Path(profile[29:]) / "user/registrymodifications.xcu").read_text()
folder.mkdir()
if source.read_bytes() != b"broken":
    shutil.copy("{converted}", folder / f"document.{{target}}")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install programs as the only ones on the path."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def put(name, text, **values):
        program = tmp_path / "bin" / name
        program.write_text(text.format(python=sys.executable, **values), encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return put


def scan(*texts):
    """Make a PDF with a page for each text; an empty text gives a page that only has a shape."""
    return files.pdf([[(72, 700, 10, text)] if text else [] for text in texts], drawing=True)


def test_scanned_page_is_read_and_marked(install):
    install("tesseract", TESSERACT)

    read = pdf.read_pdf(scan("", "The rest is text."), SCANS)

    assert read.items == (
        Block("The rest is text."),
        Heading(2, "Page 1 (OCR)"),
        Block("Item: Tea; Price: 5", PassageKind.TABLE),
        Block("- Cash"),
    )
    page = file_formats.read_file(scan(""), "team/old-scan.pdf", programs=SCANS)
    assert (page.title, page.sections[0].path) == ("Old scan", ("Page 1 (OCR)",))


def test_scanned_right_to_left_words_form_one_line():
    places = ((400, "שלום"), (200, "of"), (230, "two"), (100, "עולם"))
    words = [RecognizedWord(("1",), left, 0, 20 * len(text), 30, text) for left, text in places]

    assert [segment.text for segment in pdf._word_segments(words, 800)] == ["שלום", "of two עולם"]


@pytest.mark.usefixtures("install")
def test_missing_tesseract_fails_only_full_scans():
    with pytest.raises(UnreadableDocument, match="tesseract, which reads them, is not installed"):
        pdf.read_pdf(scan(""), SCANS)
    with pytest.raises(UnreadableDocument, match=r"ocr = true in \[ingest\]"):
        pdf.read_pdf(scan(""), NO_PROGRAMS)
    assert pdf.read_pdf(scan("", "Text."), SCANS).items == (Block("Text."),)


def test_missing_ocr_language_is_reported(install):
    install("tesseract", "#!{python}\nimport sys\nsys.exit('Error opening data file deu.traineddata')")

    with pytest.raises(UnreadableDocument, match=r"cannot read: Error opening data file deu\.traineddata"):
        pdf.read_pdf(scan(""), SCANS)


@pytest.mark.parametrize(("name", "kind"), [("a.doc", ".docx"), ("a.RTF", ".docx"), ("a.ppt", ".pptx")])
def test_libreoffice_converts_older_formats(install, tmp_path, name, kind):
    converted = tmp_path / "converted"
    deck = Presentation()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "Kept."
    deck.save(converted)
    if kind == ".docx":
        converted.write_bytes(files.docx(files.paragraph("Kept.")))
    programs = ReaderPrograms(libreoffice=True)
    with pytest.raises(UnreadableDocument, match=f"not installed: save it as {kind}"):
        file_formats.read_file(b"old", name, programs=programs)
    install("soffice", SOFFICE, converted=converted)

    assert file_formats.read_file(b"old", name, programs=programs).sections[0].blocks == (Block("Kept."),)
    with pytest.raises(UnreadableDocument, match=f"cannot be opened by LibreOffice: save it as {kind}"):
        file_formats.read_file(b"broken", name, programs=programs)
    assert "set libreoffice = true" in file_formats.explain_refusal(name)
    assert not file_formats.explain_refusal(name, programs)


def test_enabling_ocr_changes_only_pdf_marks():
    marks = [
        file_formats.make_reader_mark(name, programs) for name in ("a.pdf", "a.md") for programs in (NO_PROGRAMS, SCANS)
    ]

    assert marks[0] != marks[1]
    assert marks[0] == marks[2] == marks[3]


def test_called_program_and_files_end_with_the_reader(install, tmp_path):
    mark = tmp_path / "mark"
    install(
        "soffice",
        "#!{python}\nimport os, pathlib, sys, time\n"
        "pathlib.Path('{mark}').write_text(str(os.getpid()) + ' ' + sys.argv[-1])\ntime.sleep(3600)",
        mark=mark,
    )
    box = Sandbox(programs=ReaderPrograms(libreoffice=True))

    with box, ThreadPoolExecutor(1) as thread:
        reading = thread.submit(box.page, b"old", "a.doc")
        pid, path = wait_for(lambda: mark.exists() and mark.read_text()).split()
        box.stop()
        with pytest.raises(SourceUnavailable, match="stopped"):
            reading.result(PATIENCE)

    wait_for(lambda: has_ended(int(pid)))
    assert not Path(path).exists()
