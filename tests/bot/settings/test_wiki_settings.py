"""Settings of wikis: secrets come from named variables and are sent over HTTPS only."""

import pytest
from pydantic import ValidationError

from bot.server.refresh.source_factory import open_source
from bot.settings.tables.source_registry import SOURCE_ENTRIES
from bot.settings.tables.source_settings import SourceContext
from ingest.sources.confluence.confluence_export import ConfluenceExport
from ingest.sources.confluence.confluence_source import ConfluenceSource
from ingest.sources.mediawiki.mediawiki_source import MediaWikiSource
from tests.ingest.servers import confluence, mediawiki
from tests.ingest.servers.web import serve
from tests.ingest.sources.exports import packed, page, space, xml
from tests.ingest.sources.mirrors import Mirror

API = "https://wiki.example.com/w/api.php"
CLOUD = "https://acme.atlassian.net/wiki"


def make_settings(**values):
    return SOURCE_ENTRIES[values["type"]].settings.model_validate(values)


@pytest.mark.parametrize(("values", "expected"), [
    ({"type": "mediawiki", "api": ""}, "must have an address"),
    ({"type": "mediawiki", "api": "https://a:b@wiki.example.com/api.php"}, "without user, password"),
    ({"type": "mediawiki", "api": API, "user": "Ada@bot"}, "both user and password_env"),
    ({"type": "mediawiki", "api": API, "user": "A", "password_env": "P", "token_env": "T"}, "either a user or"),
    ({"type": "mediawiki", "api": API.replace("https", "http"), "token_env": "T"}, 'begins with "https://"'),
    ({"type": "mediawiki", "api": API, "token_env": "s3cr3t-token"}, "match pattern"),
    ({"type": "mediawiki", "api": API, "namespaces": []}, "at least 1"),
    ({"type": "mediawiki", "api": API, "relist_days": 0}, "greater than 0"),
    ({"type": "confluence", "url": CLOUD, "email": "ada@example.com"}, "must have a token_env"),
    ({"type": "confluence", "url": "http://confluence.example.com", "token_env": "T"}, 'begins with "https://"'),
    ({"type": "confluence", "url": CLOUD, "allowed": ["staff"]}, "match pattern"),
    ({"type": "confluence", "url": CLOUD, "spaces": ['HR" or type = "page']}, "match pattern"),
    ({"type": "confluence", "url": CLOUD, "statuses": ["trashed"]}, "'current' or 'archived'"),
    ({"type": "confluence_export", "path": "e.zip", "url_base": "ftp://x"}, "must be empty or begin"),
])  # fmt: skip
def test_invalid_settings_are_rejected(values, expected):
    with pytest.raises(ValidationError, match=expected) as caught:
        make_settings(**values)
    assert "s3cr3t" not in str(caught.value)


def test_mediawiki_password_comes_from_a_variable(tmp_path):
    wiki = mediawiki.Wiki(user="Ada@bot", password="s3")
    wiki.edit("Holidays", "Thirty days.")
    with serve(wiki.answer) as server:
        values = make_settings(
            type="mediawiki", api=f"{server.url}/w/api.php", user="Ada@bot", password_env="WIKI_PASSWORD"
        )
        source = open_source(values, SourceContext(tmp_path, {"WIKI_PASSWORD": "s3"}))

        assert isinstance(source, MediaWikiSource)
        assert Mirror().sync(source).titles() == ["Holidays"]
        assert all("footnote" in request.headers["user-agent"].lower() for request in server.requests)
        assert not any("s3" in request.path for request in server.requests)
    assert "s3" not in f"{values!r}"


@pytest.mark.parametrize("cloud", [False, True])
def test_confluence_cloud_and_data_center_get_their_credentials(tmp_path, cloud):
    services = confluence.Confluence(cloud=cloud)
    services.write("1", "Holidays", "<p>Thirty days.</p>")
    with serve(services.answer) as server:
        more = {"edition": "cloud", "email": "ann@acme.test"} if cloud else {}
        url = f"{server.url}{services.context}/"
        values = make_settings(type="confluence", url=url, token_env="TOKEN", spaces=["HR"], **more)
        source = open_source(values, SourceContext(tmp_path, {"TOKEN": services.password}))

        assert isinstance(source, ConfluenceSource)
        assert Mirror().sync(source).titles() == ["Holidays"]
    assert services.rejected == []


def test_confluence_export_is_opened(tmp_path):
    path = packed(tmp_path / "e.zip", xml(space(), page(10, "Home", "<p>Hi there.</p>")))

    source = open_source(make_settings(type="confluence_export", path=str(path)), SourceContext(tmp_path, {}))

    assert isinstance(source, ConfluenceExport)
    assert Mirror().sync(source).titles() == ["Home"]
