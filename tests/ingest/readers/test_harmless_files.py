"""Files that are read without a sandbox."""

import pytest

from ingest.readers import file_formats
from ingest.readers.file_formats import is_harmless


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("a.md", 1000, True),
        ("team/A.MD", 16 << 10, True),
        ("a.md", (16 << 10) + 1, False),
        ("README", 1 << 20, True),
        ("a.txt", (1 << 20) + 1, False),
        ("a.txt", file_formats.LARGEST_TEXT + 1, True),
        ("a.html", 1000, True),
        ("a.rst", 10, False),
        ("a.pdf", 10, False),
        ("a.docx", 10, False),
        ("a.msg", 10, False),
        ("a.png", 1 << 30, True),
        ("a.unheard", 1 << 30, True),
    ],
)
def test_only_small_simple_or_refused_files_are_harmless(name, size, expected):
    assert is_harmless(name, size) is expected


@pytest.mark.parametrize("suffix", [name for name in file_formats.load_formats() if name])
def test_large_files_are_not_harmless(suffix):
    assert not is_harmless(f"a{suffix}", 2 << 20)
