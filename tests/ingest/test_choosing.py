"""Which documents are wanted: by path, label, age and status."""

from datetime import UTC, datetime, timedelta

import pytest

from ingest.choosing import Rules, Traits, chooser

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rules", "wanted", "unwanted"),
    [
        (Rules(), Traits("a/b.md"), None),
        (Rules(include=("*.md",)), Traits("a/B.MD"), Traits("a.txt")),
        (Rules(exclude=("drafts",)), Traits("a/my drafts/b.md"), Traits("a/Drafts/b/c.md")),
        (Rules(exclude=("a/**",)), Traits("b/a/c.md"), Traits("a/b/c.md")),
        (Rules(exclude=("*.md",), include=("**/*",)), Traits("a.txt"), Traits("a.md")),
        (Rules(labels=("HR", "it")), Traits("x", labels=("hr", "old")), Traits("x", labels=("old",))),
        (Rules(without_labels=("old",)), Traits("x"), Traits("x", labels=("hr", "Old"))),
        (Rules(statuses=("current",)), Traits("x", status="Current"), Traits("x", status="draft")),
        (
            Rules(newest_days=30),
            Traits("x", changed=NOW - timedelta(days=30)),
            Traits("x", changed=NOW - timedelta(days=30, seconds=1)),
        ),
        (Rules(newest_days=1), Traits("no date"), None),
    ],
)
def test_what_is_wanted(rules, wanted, unwanted):
    """All rules must hold; what is below an excluded folder is excluded; what has no date is young."""
    chosen = chooser(rules, NOW)

    assert chosen(wanted)
    assert unwanted is None or not chosen(unwanted)
