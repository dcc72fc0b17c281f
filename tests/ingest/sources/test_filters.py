"""Documents are selected by path, label, age and status."""

from datetime import UTC, datetime, timedelta

import pytest

from ingest.sources.default_ignore import DEFAULT_IGNORE
from ingest.sources.filters import DocumentTraits, SelectionRules, build_explainer, build_filter

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
def test_selection_rules_are_combined(rules, wanted, unwanted):
    chosen = build_filter(rules, NOW)

    assert chosen(wanted)
    assert unwanted is None or not chosen(unwanted)


@pytest.mark.parametrize(
    ("path", "include", "reason"),
    [
        ("docs/package-lock.json", (), "lock files and lists of packages"),
        ("x/node_modules/a/README.md", (), "packages of others"),
        ("a/vendor/github.com/b/README.md", (), "packages of others"),
        ("vendor/onboarding.md", (), ""),
        ("benefits/coverage/dental.md", (), ""),
        ("build/index.md", (), ""),
        ("LICENSE", (), ""),
        ("faq.json", (), ""),
        ("package.json", ("**/*.json",), "lock files and lists of packages"),
        ("package.json", ("**/*", "**/package.json"), ""),
        ("a/yarn.lock", ("*.lock",), ""),
        ("a/yarn.lock", ("a/yarn.lock",), ""),
        ("node_modules/a.md", ("node_modules/**",), ""),
        ("node_modules/a.md", ("**/*.md",), "packages of others"),
        ("a.md", ("*.txt",), "include does not name it"),
    ],
)
def test_default_ignore_list_applies_unless_included(path, include, reason):
    rules = SelectionRules(include or ("**/*",), ignore=DEFAULT_IGNORE)

    assert build_explainer(rules, NOW)(DocumentTraits(path)) == reason


def test_configured_ignore_list_replaces_the_default():
    explain = build_explainer(SelectionRules(ignore=("*.tmp.md",)), NOW)

    assert (explain(DocumentTraits("a.tmp.md")), explain(DocumentTraits("yarn.lock"))) == ("ignore names it", "")
