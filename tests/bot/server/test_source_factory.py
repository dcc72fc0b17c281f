"""Tests of sources opened from settings: the address they read, and the contact they send."""

import bz2

import pytest

from bot.server.refresh.source_factory import open_source
from bot.server.service import is_large_dump
from bot.settings.errors import SettingsError
from bot.settings.tables.source_settings import FolderSettings, SiteSettings, SourceContext, WikipediaSettings
from tests.ingest.servers.dump_mirror import FakeMirror
from tests.ingest.servers.site import FakeSite
from tests.ingest.servers.web import serve
from tests.ingest.sources.dumps import dump, page
from tests.ingest.sources.test_cirrus_dump import ADA, lines
from tests.ingest.sources.test_cirrus_listing import parts


def titles(source):
    return [item.load().title for item in source.documents({}, "").items]


@pytest.mark.parametrize("cirrus", [False, True])
def test_wiki_dump_is_downloaded_into_the_home(tmp_path, cirrus):
    mirror = FakeMirror()
    mirror.publish(
        "simplewiki", "20261101", {"pages-articles-multistream.xml.bz2": bz2.compress(dump(page(1, "Ada", "Ada.")))}
    )
    parts(mirror, "20261108", lines(("1", ADA)))
    with serve(mirror) as server:
        wiki = WikipediaSettings(
            type="wikipedia", wiki="simple", mirror=server.url, contact="ops@example.com", cirrus=cirrus
        )
        assert titles(open_source(wiki, SourceContext(tmp_path, {}))) == ["Ada Lovelace" if cirrus else "Ada"]
        assert all("(ops@example.com)" in request.headers["user-agent"] for request in server.requests)
    (found,) = (tmp_path / "dumps").rglob("*.bz2")
    assert found.parent.name == ("cirrus" if cirrus else "dumps")


@pytest.mark.parametrize("cirrus", [False, True])
def test_local_dump_is_read_in_place(tmp_path, cirrus):
    path = tmp_path / "dump"
    path.write_bytes(lines(("1", ADA)) if cirrus else dump(page(1, "Ada", "Ada.")))
    wiki = WikipediaSettings(type="wikipedia", dump=path, cirrus=cirrus)
    assert len(titles(open_source(wiki, SourceContext(tmp_path, {})))) == 1


def test_site_is_read_by_its_rules_and_missing_token_is_reported(tmp_path):
    """Tokens are sent only over https."""
    site = FakeSite()
    site.page("/a", "A", "Page A.")
    site.page("/blog/b", "B", "Page B.")
    with serve(site) as server:
        site.origin = server.url
        chosen = SiteSettings(type="sitemap", url=server.url, contact="ops@example.com", exclude=("blog/**",), gap=0.1)
        assert titles(open_source(chosen, SourceContext(tmp_path, {}))) == ["A"]
    named = SiteSettings(type="sitemap", url="https://docs.example.com", contact="ops@example.com", token_env="DOCS")
    with pytest.raises(SettingsError, match="DOCS, which a source names, is not set"):
        open_source(named, SourceContext(tmp_path, {}))


@pytest.mark.parametrize(
    ("name", "size", "large"),
    [("small.xml.bz2", 1_000, False), ("large.xml.bz2", 100_000_000, True), ("short.xml", 100_000_000, False)],
)
def test_dump_size_decides_whether_it_is_large(tmp_path, name, size, large):
    with (tmp_path / name).open("wb") as file:
        file.truncate(size)

    assert is_large_dump(WikipediaSettings(type="wikipedia", dump=tmp_path / name)) is large
    assert is_large_dump(WikipediaSettings(type="wikipedia", wiki="simple", contact="a@b.example"))
    assert not is_large_dump(FolderSettings(type="folder", path=tmp_path))
