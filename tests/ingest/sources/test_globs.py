"""Glob patterns for paths."""

import pytest

from ingest.sources import filters


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*", "a.md", True),
        ("**/*", "x/y/a.md", True),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/A.MD", True),
        ("**/*.md", "a.mdx", False),
        ("*.md", "x/y/a.md", True),
        ("x/*.md", "x/a.md", True),
        ("x/*.md", "x/y/a.md", False),
        ("/x/*.md", "x/a.md", True),
        ("drafts", "x/drafts", True),
        ("drafts", "x/drafts2", False),
        ("drafts/**", "drafts", True),
        ("drafts/", "drafts/a.md", True),
        ("**/old/**", "x/old/y/a.md", True),
        ("**/old/**", "x/older/a.md", False),
        ("a?.txt", "ab.txt", True),
        ("a?.txt", "a/.txt", False),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("a[.txt", "a[.txt", True),
        ("a.b+c.md", "a.b+c.md", True),
    ],
)
def test_pattern_matches_exactly_the_expected_paths(pattern, path, fits):
    assert filters.compile_globs([pattern])(path) is fits


def test_empty_patterns_match_nothing():
    assert not filters.compile_globs([])("a.md")
    assert not filters.compile_globs([""])("a.md")
