"""Register the file formats, and make a page of a file's name and bytes."""

import logging
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import entry_points
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from ingest.readers import front_matter, parsed_document, plain_text
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.readers.parsed_document import ParsedDocument
from ingest.types import Page, Section, UnreadableDocument
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

READER_VERSION = "5"
"""Part of every fingerprint; raised when readers or chunking change passages, so that all documents are read again."""

LARGEST_TEXT = 32 * 1024 * 1024
"""Bytes of text or markup in one file, about thirty novels; reading takes several times that in memory."""
PLUGIN_GROUP = "footnote.readers"
"""Entry points by which other packages add a `DocumentFormat`."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A kind of file: its suffixes, and the function that reads it."""

    name: str  # as in "is broken, or not a valid ... file"
    suffixes: tuple[str, ...]  # in lower case, with their dot
    reader: str
    """`package.module:function`, from bytes (or text) to a `ParsedDocument`; imported when the first file is read."""
    text: bool = False  # whether the reader takes decoded text, not bytes
    dated: bool = False  # whether such files usually state their date
    date_line: bool = False  # whether a line at the top may state it
    largest: int | None = None
    """Limit in bytes; None for formats that are mostly not text: only the source limits their size."""
    harmless: int = -1
    """Files of at most so many bytes are read in this process, since starting another takes most of a second. The worst
    known files of this size (`footnote evaluate hostile`) take about two seconds. By default every file is read in the
    sandbox, as large libraries, C code and growing data need."""

    programs: bool = False
    """Whether its reader also takes the `ReaderPrograms` that it may call."""
    refusal: str = ""
    """What users can do instead, if the format needs LibreOffice and that is not enabled."""

    def read(self, content: bytes, programs: ReaderPrograms = NO_PROGRAMS) -> ParsedDocument:
        read: Callable[..., ParsedDocument] = pkgutil.resolve_name(self.reader)
        source = plain_text.decode_text(content) if self.text else content
        return read(source, programs) if self.programs else read(source)


def _text_format(name: str, suffixes: str, reader: str, harmless: int = 0, **options: Any) -> DocumentFormat:
    """Make a format of text or markup. A file of up to `harmless` KiB is read without the sandbox."""
    return _binary_format(
        name, suffixes, reader, dated=False, largest=LARGEST_TEXT, harmless=harmless * 1024, **options
    )


def _binary_format(name: str, suffixes: str, reader: str, **options: Any) -> DocumentFormat:
    return DocumentFormat(name, tuple(suffixes.split(" ")), f"ingest.readers.{reader}", **{"dated": True, **options})


_BUILT_IN = (
    # An unclosed mark of Markdown is searched for again from each of its occurrences.
    _text_format(
        "Markdown", ".md .markdown .mdown .mkd", "markdown_reader:read_markdown", 16, text=True, date_line=True
    ),
    _text_format("Markdown", ".mdx", "markdown_reader:read_mdx", 16, text=True, date_line=True),
    _text_format("notebook", ".ipynb", "notebook:read_notebook", 16, text=True),
    _text_format("text", " .txt .text", "plain_text:read_plain_text", 1024, text=True, date_line=True),  # or no suffix
    # Substitutions of reStructuredText may grow tenfold with each line, so it is never harmless.
    _text_format("reStructuredText", ".rst .rest", "restructured_text:read_restructured_text", text=True),
    _text_format("AsciiDoc", ".adoc .asciidoc .asc", "asciidoc:read_asciidoc", 64, text=True),
    _text_format("LaTeX", ".tex .ltx", "latex:read_latex", 64, text=True),
    _text_format("subtitles", ".srt .vtt", "subtitles:read_subtitles", 64, text=True),
    _text_format("HTML", ".html .htm .xhtml", "web_page:read_web_page", 32),
    _text_format("XML", ".xml .rss .atom", "web_page:read_feed", 64),
    _text_format("CSV", ".csv .tsv", "spreadsheet:read_delimited", 64, text=True),
    _text_format("JSON", ".json .jsonl .ndjson", "structured_data:read_json", 64, text=True),
    _text_format("YAML", ".yaml .yml", "structured_data:read_yaml", 64, text=True),
    _text_format("TOML", ".toml", "structured_data:read_toml", 16, text=True),
    _binary_format("e-mail", ".eml", "mail:read_eml", harmless=16 << 10),
    _binary_format("mailbox", ".mbox", "mail:read_mbox"),
    _binary_format("Outlook", ".msg", "mail:read_msg"),
    _binary_format("PDF", ".pdf", "pdf:read_pdf", programs=True),
    _binary_format("Word", ".docx .docm .dotx", "office:read_word"),
    _binary_format("PowerPoint", ".pptx .pptm .ppsx", "office:read_slides"),
    _binary_format(
        "Word", ".doc .dot .rtf", "office:read_older_word", programs=True, refusal="save it as .docx or .pdf"
    ),
    _binary_format(
        "PowerPoint", ".ppt .pps .pot", "office:read_older_slides", programs=True, refusal="save it as .pptx or .pdf"
    ),
    _binary_format("OpenDocument", ".odt .ott", "open_document:read_text_document"),
    _binary_format("OpenDocument", ".odp .otp", "open_document:read_presentation"),
    _binary_format("OpenDocument", ".ods .ots", "open_document:read_ods"),
    _binary_format("EPUB", ".epub", "office:read_epub"),
    _binary_format("Excel", ".xlsx .xlsm", "spreadsheet:read_xlsx"),
    _binary_format("Excel", ".xls", "spreadsheet:read_xls", dated=False),
)


@cache
def load_formats() -> Mapping[str, DocumentFormat]:
    """Return the formats by suffix in lower case; formats of other packages replace ours."""
    formats = {suffix: known for known in _BUILT_IN for suffix in known.suffixes}
    for plugin in entry_points(group=PLUGIN_GROUP):
        try:
            added = plugin.load()
            formats |= dict.fromkeys(added.suffixes, added)
        except Exception:  # noqa: BLE001 - another package must not keep our own files from being read
            _log.exception("cannot load the reader %s of another package; skipping it", plugin.name)
    return MappingProxyType(formats)


def is_harmless(name: str, size: int) -> bool:
    """Return whether a file of `size` bytes needs no sandbox: it is harmless at that size, or no reader reads it."""
    known = load_formats().get(_suffix(name))
    if known is None or (known.largest is not None and size > known.largest):
        return True
    return size <= known.harmless


_REFUSALS: Mapping[str, str] = {
    **dict.fromkeys(
        (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".heic", ".ico", ".svg", ".psd", ".drawio"),
        "pictures are not read",
    ),
    **dict.fromkeys((".mp3", ".wav", ".m4a", ".ogg", ".flac", ".aac"), "sound is not read: add a transcript"),
    **dict.fromkeys((".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v"), "videos are not read: add a transcript"),
    **dict.fromkeys((".zip", ".gz", ".bz2", ".xz", ".tar", ".tgz", ".7z", ".rar"), "archives are not read: unpack it"),
    **dict.fromkeys((".exe", ".dll", ".so", ".bin", ".dmg", ".iso", ".jar", ".class", ".pyc"), "programs are not read"),
    ".pages": "this format is not read: save it as .docx or .pdf",
    ".key": "this format is not read: save it as .pptx or .pdf",
    **dict.fromkeys((".numbers", ".xlsb"), "this format is not read: save it as .xlsx or .csv"),
}

_INDEXES = frozenset({"index", "_index", "readme", "default", "home"})
_DATED = lazy_compile(
    rb"\A(?:\xef\xbb\xbf)?(?:---|\+\+\+)\r?\n(?:.*\n)*?(?:(?:last_?-?)?(?:updated|mod(?:ified)?)|date)\s*[:=]",
    re.IGNORECASE,
)
_SAMPLE = 4000  # characters for detecting the language


def explain_refusal(name: str, programs: ReaderPrograms = NO_PROGRAMS) -> str:
    """Return the reason if files of this name are not read; empty if they are."""
    suffix = _suffix(name)
    if known := load_formats().get(suffix):
        if known.refusal and not programs.libreoffice:
            return f"this format is not read: {known.refusal}, or set libreoffice = true in [ingest]"
        return ""
    return _REFUSALS.get(suffix, f"{suffix} files are not read")


def make_reader_mark(name: str, programs: ReaderPrograms) -> str:
    """Return the reader's part of a file's fingerprint; if it changes, the file is read again."""
    known = load_formats().get(_suffix(name))
    scanned = known is not None and known.programs and not known.refusal and programs.ocr
    return READER_VERSION + (f"+{'+'.join(programs.ocr_languages)}" if scanned else "")


def is_dated(name: str, content: bytes) -> bool:
    """Return whether a document states its own date, so that the date of its file is not used."""
    known, head = load_formats()[_suffix(name)], content[:_SAMPLE]
    if known.dated or _DATED.search(head):
        return True
    return known.date_line and front_matter.states_date(head.decode("utf-8-sig", "replace").replace("\r", ""))


class FileFacts(TypedDict, total=False):
    """Facts that a source knows about a file. A revision or date that the file itself states is used instead."""

    url: str
    revision: str
    modified: datetime | None


def read_file(content: bytes, name: str, *, programs: ReaderPrograms = NO_PROGRAMS, **facts: Unpack[FileFacts]) -> Page:
    """Return the page that a file's bytes contain. `name` is the file's path with its suffix.

    If the file states a date that cannot be parsed, the page has no date: `modified` would make it look new.
    """
    return build_page(_read_content(content, name, programs), name, **facts)


def build_page(reading: ParsedDocument, name: str, **facts: Unpack[FileFacts]) -> Page:
    """Make a page of a parsed document. Raises `UnreadableDocument` if it has no text."""
    heading = "" if reading.untitled else parsed_document.find_title(reading.items)
    stated_title = reading.title or heading or reading.fallback_title
    title = " ".join(stated_title.split()) or title_from_name(name)
    sections = parsed_document.group_sections(reading.items, title)
    if not sections:
        raise UnreadableDocument("holds no text")
    return Page(
        title=title,
        sections=sections,
        url=facts.get("url", ""),
        revision=reading.revision or facts.get("revision", ""),
        date=reading.date or (None if reading.dated else facts.get("modified")),
        language=reading.language or detect_language(_language_sample(sections)),
    )


def _read_content(content: bytes, name: str, programs: ReaderPrograms) -> ParsedDocument:
    if reason := explain_refusal(name, programs):
        raise UnreadableDocument(reason)
    if not content.strip():
        raise UnreadableDocument("is empty")
    kind = load_formats()[_suffix(name)]
    if kind.largest is not None and len(content) > kind.largest:
        raise UnreadableDocument(f"holds more than {kind.largest // 2**20} MB of text: split it")
    try:
        return kind.read(content, programs)
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # parsers may raise anything for a broken file
        raise UnreadableDocument(f"is broken, or not a valid {kind.name} file ({type(error).__name__})") from error


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def title_from_name(name: str) -> str:
    """Make a title from a file's path: "On call rota" from `team/on-call_rota.md`, "Team" from `team/index.md`."""
    path = PurePosixPath(name)
    stem = path.parent.name if path.stem.lower() in _INDEXES and path.parent.name else path.stem
    words = re.sub(r"[-_\s]+", " ", stem).strip() or stem
    return words[:1].upper() + words[1:]


def _language_sample(sections: tuple[Section, ...]) -> str:
    blocks = [block for section in sections for block in section.blocks]
    prose = " ".join(block.text for block in blocks if block.kind is PassageKind.PROSE)
    return (prose or " ".join(block.text for block in blocks))[:_SAMPLE]
