"""The address at which a site generator publishes a file."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.front_matter import read_fields
from ingest.sources.published_address import build_published_url

BASE = "https://x.org/handbook"


@pytest.mark.parametrize(
    ("site", "key", "fields", "path"),
    [
        ("", "a/b c.md", {}, "a/b%20c.md"),
        ("", "a/b.md", {"permalink": "/leave/"}, "leave/"),
        ("", "a/b.md", {"url": "/leave.html"}, "leave.html"),
        ("", "a/b.md", {"slug": "leave", "url": "https://other.org/x"}, "a/b.md"),
        ("jekyll", "a/b.md", {}, "a/b.html"),
        ("jekyll", "a/index.md", {}, "a/"),
        ("jekyll", "README.md", {}, ""),
        ("jekyll", "a/b.md", {"permalink": "pretty"}, "a/b/"),
        ("jekyll", "_pages/a/b.md", {"permalink": "/b%20c/"}, "b%20c/"),
        ("jekyll", "_guides/a/b.md", {}, "guides/a/b.html"),
        ("jekyll", "_guides/b.md", {"permalink": "/:collection/:name/"}, "guides/b/"),
        ("jekyll", "_posts/2024-05-06-Leave.md", {}, "2024/05/06/Leave.html"),
        ("jekyll", "hr/_posts/2024-5-6-a.md", {"categories": ["Pay"], "slug": "b"}, "hr/pay/2024/05/06/b.html"),
        ("jekyll", "_posts/2024-05-06-a.md", {"permalink": "pretty", "date": date(2023, 1, 2)}, "2023/01/02/a/"),
        ("jekyll", "files/a.pdf", {}, "files/a.pdf"),
        ("hugo", "content/HR/My Leave.md", {}, "hr/my-leave/"),
        ("hugo", "content/hr/_index.md", {"slug": "x"}, "hr/"),
        ("hugo", "hr/leave/index.md", {"slug": "days-off"}, "hr/days-off/"),
        ("hugo", "content/hr/leave.md", {"url": "leave/"}, "leave/"),
        ("hugo", "static/a.pdf", {}, "a.pdf"),
        ("mkdocs", "docs/HR/Leave.md", {}, "HR/Leave/"),
        ("mkdocs", "docs/hr/README.md", {}, "hr/"),
        ("mkdocs", "index.md", {}, ""),
        ("mkdocs", "docs/a.html", {}, "a.html"),
        ("docusaurus", "docs/02-hr/01_leave.md", {}, "docs/hr/leave"),
        ("docusaurus", "docs/hr/2024-05-notes.md", {}, "docs/hr/2024-05-notes"),
        ("docusaurus", "docs/hr/leave.md", {"slug": "/days-off"}, "docs/days-off"),
        ("docusaurus", "docs/hr/leave.md", {"id": "off"}, "docs/hr/off"),
        ("docusaurus", "docs/HR/hr.md", {}, "docs/HR/"),
        ("docusaurus", "hr/leave.md", {"slug": "off"}, "hr/off"),
        ("docusaurus", "blog/2024-05-06-party/index.md", {}, "blog/2024/05/06/party"),
        ("docusaurus", "blog/2024-05-06-party.md", {"slug": "party"}, "blog/party"),
        ("docusaurus", "src/pages/about.mdx", {}, "about"),
        ("docusaurus", "static/a.pdf", {}, "a.pdf"),
    ],
)
def test_address_follows_front_matter_or_generator(site, key, fields, path):
    assert build_published_url(BASE, key, fields, site) == f"{BASE}/{path}"


def test_without_base_only_absolute_permalinks_are_used():
    assert build_published_url("", "a.md", {"permalink": "https://y.org/a"}) == "https://y.org/a"
    assert build_published_url("", "a.md", {"permalink": "/a", "url": "https://y.org/a"}) == ""
    assert build_published_url(BASE, "a.md", {"permalink": "https://x.org/a"}) == "https://x.org/a"


def test_front_matter_is_read_in_yaml_and_toml():
    assert read_fields(b"---\r\npermalink: /a/\r\n---\r\nText")["permalink"] == "/a/"
    assert read_fields(b'+++\nslug = "b"\n+++\nText') == {"slug": "b"}
    assert read_fields(b"Text\n---\na: b\n---") == {}


@given(
    st.sampled_from(["", "jekyll", "hugo", "mkdocs", "docusaurus"]),
    st.text(min_size=1, max_size=30),
    st.dictionaries(
        st.sampled_from(["permalink", "url", "slug", "id", "date", "categories"]),
        st.one_of(st.text(max_size=20), st.integers(), st.lists(st.text(max_size=5), max_size=2), st.none()),
    ),
)
def test_addresses_never_leave_the_base(site, key, fields):
    key = key.strip("/") or "a"
    made = build_published_url(BASE, f"{key}.md", fields, site)

    assert made.startswith(f"{BASE}/")
    assert made.isascii()
    assert ".." not in made.removeprefix(BASE).split("/") or ".." in key.split("/")
