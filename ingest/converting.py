"""The bytes of a file and its name -> a page: which reader reads which kind, and what every page is given.

The readers in `formats` know one format each and nothing of files; here their readings become alike.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import PurePosixPath
from typing import NamedTuple

from ingest.formats import markdown, outline, plain
from ingest.formats.reading import Reading
from ingest.types import Page, Section, UnreadableDocument
from storage.language.detect import detect
from storage.types import Kind

READER_VERSION = "2"
"""Part of every fingerprint: raised whenever readers or cutting give other passages, so that all is read again."""

_Read = Callable[[bytes], Reading]


LARGEST_TEXT = 32 * 1024 * 1024
"""Bytes of text or markup in one file; reading it takes several times that in memory. It is some thirty novels."""


class Format(NamedTuple):
    """How one kind of file is read."""

    name: str
    """As in "is broken, or no ... file"."""
    read: _Read
    dated: bool = False
    """Whether such files usually tell their own date."""
    largest: int | None = None
    """Bytes that one may have; None: what its source allows, as much of it is no text."""


def _text(read: Callable[[str], Reading]) -> _Read:
    return lambda content: read(plain.decode(content))


def _late(module: str, function: str = "read", *, text: bool = False) -> _Read:
    """A reader whose module, or what it stands on, is heavy: imported when the first such file is read."""

    def read(content: bytes) -> Reading:
        found = getattr(import_module(f"ingest.formats.{module}"), function)
        reading: Reading = found(plain.decode(content) if text else content)
        return reading

    return read


_MARKDOWN = Format("Markdown", _text(markdown.read), largest=LARGEST_TEXT)
_PLAIN = Format("text", _text(plain.read), largest=LARGEST_TEXT)
_WEBPAGE = Format("HTML", _late("webpage"), largest=LARGEST_TEXT)
_WORD = Format("Word", _late("word"), dated=True)
_SLIDES = Format("PowerPoint", _late("slides"), dated=True)
_WORKBOOK = Format("Excel", _late("sheets", "read_xlsx"), dated=True)
_ROWS = Format("CSV", _late("sheets", "read_delimited", text=True), largest=LARGEST_TEXT)
_FEED = Format("XML", _late("feed"), largest=LARGEST_TEXT)
_JSON = Format("JSON", _late("records", "read_json", text=True), largest=LARGEST_TEXT)

FORMATS: Mapping[str, Format] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), _MARKDOWN),
    ".mdx": Format("Markdown", _text(markdown.read_mdx), largest=LARGEST_TEXT),
    **dict.fromkeys(("", ".txt", ".text"), _PLAIN),
    **dict.fromkeys(
        (".rst", ".rest"), Format("reStructuredText", _late("restructured", text=True), largest=LARGEST_TEXT)
    ),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _WEBPAGE),
    ".pdf": Format("PDF", _late("pdf"), dated=True),
    **dict.fromkeys((".docx", ".docm", ".dotx"), _WORD),
    **dict.fromkeys((".pptx", ".pptm", ".ppsx"), _SLIDES),
    **dict.fromkeys((".xlsx", ".xlsm"), _WORKBOOK),
    ".xls": Format("Excel", _late("sheets", "read_xls")),
    **dict.fromkeys((".csv", ".tsv"), _ROWS),
    ".epub": Format("EPUB", _late("epub"), dated=True),
    ".eml": Format("e-mail", _late("mail", "read_eml"), dated=True),
    ".mbox": Format("mailbox", _late("mail", "read_mbox"), dated=True),
    ".msg": Format("Outlook", _late("mail", "read_msg"), dated=True),
    ".ipynb": Format("notebook", _late("notebook", text=True), largest=LARGEST_TEXT),
    **dict.fromkeys((".xml", ".rss", ".atom"), _FEED),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), _JSON),
    **dict.fromkeys((".yaml", ".yml"), Format("YAML", _late("records", "read_yaml", text=True), largest=LARGEST_TEXT)),
    ".toml": Format("TOML", _late("records", "read_toml", text=True), largest=LARGEST_TEXT),
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
_DATED = re.compile(
    rb"\A(?:\xef\xbb\xbf)?(?:---|\+\+\+)\r?\n(?:.*\n)*?(?:(?:last_?-?)?(?:updated|mod(?:ified)?)|date)\s*[:=]",
    re.IGNORECASE,
)
_SAMPLE = 4000
"""Characters that the language of a page is told from."""


def refusal(name: str) -> str:
    """Why files of this name are not read at all, in plain words; empty if they are."""
    suffix = _suffix(name)
    if suffix in FORMATS:
        return ""
    return _REFUSALS.get(suffix, f"{suffix} files are not read")


def dated(name: str, content: bytes) -> bool:
    """Whether a document says itself when it was last changed, so that its file's date is no part of it."""
    return FORMATS[_suffix(name)].dated or bool(_DATED.search(content[:_SAMPLE]))


def page(content: bytes, name: str, *, url: str = "", revision: str = "", modified: datetime | None = None) -> Page:
    """Read a file's bytes; `name` is its path with suffix. `revision` and `modified` stand in for what it does not say.

    A date that it states and that is not understood is None, for `modified` would make it look new.

    Raises `UnreadableDocument` with a reason that a person can act upon.
    """
    return made(_reading(content, name), name, url=url, revision=revision, modified=modified)


def made(reading: Reading, name: str, *, url: str = "", revision: str = "", modified: datetime | None = None) -> Page:
    """Make a page of what was read. Raises `UnreadableDocument` if that is no text."""
    title = _title(reading, name)
    found = outline.sections(reading.items, title)
    if not found:
        raise UnreadableDocument("holds no text")
    return Page(
        title=title,
        sections=found,
        url=url,
        revision=reading.revision or revision,
        date=reading.date or (None if reading.dated else modified),
        language=reading.language or detect(_sample(found)),
    )


def _reading(content: bytes, name: str) -> Reading:
    if reason := refusal(name):
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


def _title(reading: Reading, name: str) -> str:
    said = reading.title or outline.title_of(reading.items) or reading.fallback_title
    return " ".join(said.split()) or readable(name)


def readable(name: str) -> str:
    """A file's name as a title: `team/on-call_rota.md` is "On call rota", `team/index.md` is "Team"."""
    path = PurePosixPath(name)
    stem = path.parent.name if path.stem.lower() in _INDEXES and path.parent.name else path.stem
    words = re.sub(r"[-_\s]+", " ", stem).strip() or stem
    return words[:1].upper() + words[1:]


def _sample(sections: tuple[Section, ...]) -> str:
    """Prose if there is any: code and tables hold words of no language."""
    blocks = [block for section in sections for block in section.blocks]
    prose = " ".join(block.text for block in blocks if block.kind is Kind.PROSE)
    return (prose or " ".join(block.text for block in blocks))[:_SAMPLE]
