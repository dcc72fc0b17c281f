"""Which documents may be read in this process: small ones of formats that take little whatever they hold. Pure.

To begin a process takes most of a second, and a company's pages are small. The sizes are such that the worst files that
are known (`footnote evaluate hostile`, and those files at smaller sizes) take about two seconds at most.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from ingest import converting

_KB = 1 << 10

_HARMLESS: Mapping[str, int] = MappingProxyType({
    **dict.fromkeys(("", ".txt", ".text"), 1024 * _KB),
    # Marks that open and never close are looked for again from each of them.
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".ipynb"), 16 * _KB),
    **dict.fromkeys((".html", ".htm", ".xhtml"), 32 * _KB),
    **dict.fromkeys((".csv", ".tsv"), 64 * _KB),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".yaml", ".yml"), 64 * _KB),
    ".toml": 16 * _KB,
    **dict.fromkeys((".xml", ".rss", ".atom"), 64 * _KB),
    ".eml": 16 * _KB,
})  # fmt: skip
"""Bytes, by suffix. What is missing is always read apart: PDFs and archives, whose readers are large libraries, many of
them in C; old Office files; and reStructuredText, whose substitutions may grow tenfold with each line."""


def harmless(name: str, size: int) -> bool:
    """Whether a file of this name and of so many bytes may be read here; so may what is refused unread."""
    suffix = PurePosixPath(name).suffix.lower()
    kind = converting.FORMATS.get(suffix)
    if kind is None or (kind.largest is not None and size > kind.largest):
        return True
    return size <= _HARMLESS.get(suffix, -1)
