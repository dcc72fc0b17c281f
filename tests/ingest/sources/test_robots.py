"""Robots.txt by RFC 9309, in any spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.sites.sitemap import LARGEST_ROBOTS, RobotsRules

SITE = "https://docs.example.com"


def allowed(text, *paths):
    rules = RobotsRules(text.encode())
    return [rules.allows(SITE + path) for path in paths]


def test_longest_rule_wins_and_allow_breaks_ties():
    text = "User-agent: *\nDisallow: /docs\nAllow: /docs/public\nDisallow: /same\nAllow: /same"
    assert allowed(text, "/", "/docs", "/docs/a", "/docs/public/a", "/same") == [True, False, False, True, True]


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/*.pdf$", "/a/b.pdf", True),
        ("/*.pdf$", "/a/b.pdf?x", False),
        ("/a*b*c", "/a-b-c-d", True),
        ("/a*b*c", "/a-c-b", False),
        ("/a*b$", "/ab-b", True),
        ("/a*ab$", "/ab", False),
        ("/x$", "/xy", False),
        ("/?q=", "/?q=1", True),
        ("/%7Ejoe", "/~joe/x", True),
        ("/ä", "/%C3%A4", True),
        ("/" + "*a" * 3_000, "/" + "a" * 2_999 + "b" * 5_000, False),
    ],
)
def test_wildcards_and_end_marks_match_quickly(pattern, path, fits):
    assert allowed(f"User-agent: *\nDisallow: {pattern}", path) == [not fits]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("", True),
        ("User-agent: *\nDisallow:", True),
        ("User-agent: *\nDisallow: /", False),
        ("User-agent: *\nDisallow: /\nUser-agent: footnote\nAllow: /", True),
        ("User-agent: FootNote/2\nDisallow: /", False),
        ("User-agent: footnotebot\nDisallow: /", True),
        ("User-agent: other\nUser-agent: footnote\nDisallow: /", False),
        ("User-agent: footnote\nCrawl-delay: 2\nUser-agent: other\nDisallow: /", True),
        ("Disallow: /", True),
        ("\ufeffuser-AGENT : *  # all\r\n  DISALLOW :/ # everything", False),
        ("User-agent: *\n\nSitemap: https://x/s.xml\n\nDisallow: /", False),
    ],
)
def test_group_of_our_agent_takes_precedence(text, reads):
    assert allowed(text, "/a") == [reads]


def test_delay_and_sitemaps_are_parsed():
    rules = RobotsRules(
        b"Sitemap: https://a/1.xml\nUser-agent: *\nCrawl-delay: 2.5\nCrawl-delay: soon\nsitemap:https://a/2.xml"
    )
    assert (rules.delay, rules.sitemaps) == (2.5, ("https://a/1.xml", "https://a/2.xml"))


def test_only_the_beginning_of_a_large_file_is_parsed():
    text = b"User-agent: *\nDisallow: /a\n" + b"#" * LARGEST_ROBOTS + b"\nDisallow: /b\n"
    assert [RobotsRules(text).allows(SITE + path) for path in ("/a", "/b")] == [False, True]


@given(st.binary(max_size=300), st.text(max_size=30))
def test_arbitrary_content_is_accepted(content, path):
    RobotsRules(b"User-agent: *\n" + content).allows(f"{SITE}/{path}")
