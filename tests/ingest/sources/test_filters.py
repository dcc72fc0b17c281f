"""Which documents are wanted: by path, label, age and status."""

from datetime import UTC, datetime, timedelta

import pytest

from ingest.sources.filters import DocumentTraits, SelectionRules, build_filter

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rules", "wanted", "unwanted"),
    [
        (SelectionRules(), DocumentTraits("a/b.md"), None),
        (SelectionRules(include=("*.md",)), DocumentTraits("a/B.MD"), DocumentTraits("a.txt")),
        (SelectionRules(exclude=("drafts",)), DocumentTraits("a/my drafts/b.md"), DocumentTraits("a/Drafts/b/c.md")),
        (SelectionRules(exclude=("a/**",)), DocumentTraits("b/a/c.md"), DocumentTraits("a/b/c.md")),
        (SelectionRules(exclude=("*.md",), include=("**/*",)), DocumentTraits("a.txt"), DocumentTraits("a.md")),
        (
            SelectionRules(labels=("HR", "it")),
            DocumentTraits("x", labels=("hr", "old")),
            DocumentTraits("x", labels=("old",)),
        ),
        (SelectionRules(without_labels=("old",)), DocumentTraits("x"), DocumentTraits("x", labels=("hr", "Old"))),
        (
            SelectionRules(statuses=("current",)),
            DocumentTraits("x", status="Current"),
            DocumentTraits("x", status="draft"),
        ),
        (
            SelectionRules(newest_days=30),
            DocumentTraits("x", changed=NOW - timedelta(days=30)),
            DocumentTraits("x", changed=NOW - timedelta(days=30, seconds=1)),
        ),
        (SelectionRules(newest_days=1), DocumentTraits("no date"), None),
    ],
)
def test_what_is_wanted(rules, wanted, unwanted):
    """All rules must hold; what is below an excluded folder is excluded; what has no date is young."""
    chosen = build_filter(rules, NOW)

    assert chosen(wanted)
    assert unwanted is None or not chosen(unwanted)
