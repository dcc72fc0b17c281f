"""Turn the bytes of a file and its name into a page: which reader reads which format, and what every page is given.

The readers know one format each and nothing of files; here their readings become alike.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import PurePosixPath
from typing import NamedTuple

from ingest.readers import markdown_reader, parsed_document, plain_text
from ingest.readers.parsed_document import ParsedDocument
from ingest.types import Page, Section, UnreadableDocument
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

READER_VERSION = "2"
"""Part of every fingerprint: raised whenever readers or cutting give other passages, so that all is read again."""

_Read = Callable[[bytes], ParsedDocument]

LARGEST_TEXT = 32 * 1024 * 1024
"""Bytes of text or markup in one file; reading it takes several times that in memory. It is some thirty novels."""


class DocumentFormat(NamedTuple):
    """Describe how one kind of file is read."""

    name: str
    """As in "is broken, or no ... file"."""
    read: _Read
    dated: bool = False
    """Whether such files usually tell their own date."""
    largest: int | None = None
    """Bytes that one may have; None: what its source allows, as much of it is no text."""


def _text_reader(read: Callable[[str], ParsedDocument]) -> _Read:
    return lambda content: read(plain_text.decode_text(content))


def _lazy_reader(module: str, function: str, *, text: bool = False) -> _Read:

    def read(content: bytes) -> ParsedDocument:
        found = getattr(import_module(f"ingest.readers.{module}"), function)
        reading: ParsedDocument = found(plain_text.decode_text(content) if text else content)
        return reading

    return read


_MARKDOWN = DocumentFormat("Markdown", _text_reader(markdown_reader.read_markdown), largest=LARGEST_TEXT)
_PLAIN = DocumentFormat("text", _text_reader(plain_text.read_plain_text), largest=LARGEST_TEXT)
_WEBPAGE = DocumentFormat("HTML", _lazy_reader("web_page", "read_web_page"), largest=LARGEST_TEXT)
_WORD = DocumentFormat("Word", _lazy_reader("office", "read_word"), dated=True)
_SLIDES = DocumentFormat("PowerPoint", _lazy_reader("office", "read_slides"), dated=True)
_WORKBOOK = DocumentFormat("Excel", _lazy_reader("spreadsheet", "read_xlsx"), dated=True)
_ROWS = DocumentFormat("CSV", _lazy_reader("spreadsheet", "read_delimited", text=True), largest=LARGEST_TEXT)
_FEED = DocumentFormat("XML", _lazy_reader("web_page", "read_feed"), largest=LARGEST_TEXT)
_JSON = DocumentFormat("JSON", _lazy_reader("structured_data", "read_json", text=True), largest=LARGEST_TEXT)

FORMATS: Mapping[str, DocumentFormat] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), _MARKDOWN),
    ".mdx": DocumentFormat("Markdown", _text_reader(markdown_reader.read_mdx), largest=LARGEST_TEXT),
    **dict.fromkeys(("", ".txt", ".text"), _PLAIN),
    **dict.fromkeys(
        (".rst", ".rest"),
        DocumentFormat(
            "reStructuredText",
            _lazy_reader("restructured_text", "read_restructured_text", text=True),
            largest=LARGEST_TEXT,
        ),
    ),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _WEBPAGE),
    ".pdf": DocumentFormat("PDF", _lazy_reader("pdf", "read_pdf"), dated=True),
    **dict.fromkeys((".docx", ".docm", ".dotx"), _WORD),
    **dict.fromkeys((".pptx", ".pptm", ".ppsx"), _SLIDES),
    **dict.fromkeys((".xlsx", ".xlsm"), _WORKBOOK),
    ".xls": DocumentFormat("Excel", _lazy_reader("spreadsheet", "read_xls")),
    **dict.fromkeys((".csv", ".tsv"), _ROWS),
    ".epub": DocumentFormat("EPUB", _lazy_reader("office", "read_epub"), dated=True),
    ".eml": DocumentFormat("e-mail", _lazy_reader("mail", "read_eml"), dated=True),
    ".mbox": DocumentFormat("mailbox", _lazy_reader("mail", "read_mbox"), dated=True),
    ".msg": DocumentFormat("Outlook", _lazy_reader("mail", "read_msg"), dated=True),
    ".ipynb": DocumentFormat(
        "notebook", _lazy_reader("markdown_reader", "read_notebook", text=True), largest=LARGEST_TEXT
    ),
    **dict.fromkeys((".xml", ".rss", ".atom"), _FEED),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), _JSON),
    **dict.fromkeys(
        (".yaml", ".yml"),
        DocumentFormat("YAML", _lazy_reader("structured_data", "read_yaml", text=True), largest=LARGEST_TEXT),
    ),
    ".toml": DocumentFormat("TOML", _lazy_reader("structured_data", "read_toml", text=True), largest=LARGEST_TEXT),
}
"""The reader of each kind of file, by suffix in lower case."""

_REFUSALS: Mapping[str, str] = {
    **dict.fromkeys(
        (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".heic", ".ico", ".svg", ".psd", ".drawio"),
        "pictures are not read",
    ),
    **dict.fromkeys((".mp3", ".wav", ".m4a", ".ogg", ".flac", ".aac"), "sound is not read: add a transcript"),
    **dict.fromkeys((".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v"), "films are not read: add a transcript"),
    **dict.fromkeys((".zip", ".gz", ".bz2", ".xz", ".tar", ".tgz", ".7z", ".rar"), "archives are not read: unpack it"),
    **dict.fromkeys((".exe", ".dll", ".so", ".bin", ".dmg", ".iso", ".jar", ".class", ".pyc"), "programs are not read"),
    **dict.fromkeys((".doc", ".dot", ".rtf", ".odt", ".pages"), "this format is not read: save it as .docx or .pdf"),
    **dict.fromkeys((".ppt", ".odp", ".key"), "this format is not read: save it as .pptx or .pdf"),
    **dict.fromkeys((".ods", ".numbers", ".xlsb"), "this format is not read: save it as .xlsx or .csv"),
}

_INDEXES = frozenset({"index", "_index", "readme", "default", "home"})
_DATED = lazy_compile(
    rb"\A(?:\xef\xbb\xbf)?(?:---|\+\+\+)\r?\n(?:.*\n)*?(?:(?:last_?-?)?(?:updated|mod(?:ified)?)|date)\s*[:=]",
    re.IGNORECASE,
)
_SAMPLE = 4000
"""Characters that the language of a page is told from."""


def explain_refusal(name: str) -> str:
    """Return why files of this name are not read at all, in plain words; empty if they are."""
    suffix = _suffix(name)
    if suffix in FORMATS:
        return ""
    return _REFUSALS.get(suffix, f"{suffix} files are not read")


def is_dated(name: str, content: bytes) -> bool:
    """Tell whether a document states when it was last changed, so that its file's date is no part of it."""
    return FORMATS[_suffix(name)].dated or bool(_DATED.search(content[:_SAMPLE]))


def read_file(
    content: bytes, name: str, *, url: str = "", revision: str = "", modified: datetime | None = None
) -> Page:
    """Read a file's bytes; `name` is its path with suffix. `revision` and `modified` stand in for what it does not say.

    A date that it states and that is not understood is None, for `modified` would make it look new.

    Raises `UnreadableDocument` with a reason that a person can act upon.
    """
    return build_page(_read_content(content, name), name, url=url, revision=revision, modified=modified)


def build_page(
    reading: ParsedDocument, name: str, *, url: str = "", revision: str = "", modified: datetime | None = None
) -> Page:
    """Make a page of what was read. Raises `UnreadableDocument` if that is no text."""
    title = _pick_title(reading, name)
    found = parsed_document.group_sections(reading.items, title)
    if not found:
        raise UnreadableDocument("holds no text")
    return Page(
        title=title,
        sections=found,
        url=url,
        revision=reading.revision or revision,
        date=reading.date or (None if reading.dated else modified),
        language=reading.language or detect_language(_language_sample(found)),
    )


def _read_content(content: bytes, name: str) -> ParsedDocument:
    if reason := explain_refusal(name):
        raise UnreadableDocument(reason)
    if not content.strip():
        raise UnreadableDocument("is empty")
    kind = FORMATS[_suffix(name)]
    if kind.largest is not None and len(content) > kind.largest:
        raise UnreadableDocument(f"holds more than {kind.largest // 2**20} MB of text: split it")
    try:
        return kind.read(content)
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # A foreign parser may raise anything over a broken file
        raise UnreadableDocument(f"is broken, or no {kind.name} file ({type(error).__name__})") from error


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _pick_title(reading: ParsedDocument, name: str) -> str:
    said = reading.title or parsed_document.find_title(reading.items) or reading.fallback_title
    return " ".join(said.split()) or title_from_name(name)


def title_from_name(name: str) -> str:
    """Make a title of a file's name: `team/on-call_rota.md` is "On call rota", `team/index.md` is "Team"."""
    path = PurePosixPath(name)
    stem = path.parent.name if path.stem.lower() in _INDEXES and path.parent.name else path.stem
    words = re.sub(r"[-_\s]+", " ", stem).strip() or stem
    return words[:1].upper() + words[1:]


def _language_sample(sections: tuple[Section, ...]) -> str:
    blocks = [block for section in sections for block in section.blocks]
    prose = " ".join(block.text for block in blocks if block.kind is PassageKind.PROSE)
    return (prose or " ".join(block.text for block in blocks))[:_SAMPLE]
