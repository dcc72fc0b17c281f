"""Settings of the search engine: off until configured, and its key is sent over HTTPS only."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bot.answering.turn_record import digest_settings
from bot.server.monitoring.server_log import collect_secrets
from bot.settings.settings_reader import load_settings
from bot.settings.tables.settings_tables import Settings
from bot.wiring import open_web_search

KEY = "a-key-that-nobody-may-see"
SEARX = "http://localhost:8888"


@pytest.mark.parametrize(("given", "wrong"), [
    ({"type": "searxng"}, "url of your SearXNG"),
    ({"type": "searxng", "url": "localhost:8888"}, "http://"),
    ({"type": "brave"}, "must have the api_key"),
    ({"type": "searxng", "url": "http://searx.example", "api_key": KEY}, "https://"),
    ({"type": "brave", "api_key": KEY, "url": "http://elsewhere.example/"}, "https://"),
    ({"type": "searxng", "url": SEARX, "visible_to": ["everybody"]}, "must be"),
    ({"type": "searxng", "url": SEARX, "hosts": ["http://wiki.lan/"]}, 'such as "wiki.lan"'),
    ({"type": "google"}, "type"),
])  # fmt: skip
def test_invalid_engine_is_refused_without_showing_the_key(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Settings.model_validate({"search_engine": given})
    assert wrong in str(raised.value)
    assert KEY not in str(raised.value)


def test_search_engine_is_off_until_configured() -> None:
    settings = Settings()
    assert settings.search_engine.corpus == ""
    assert settings.visible_to == {}
    assert open_web_search(settings.search_engine) is None


def test_channel_may_name_a_web_corpus_only_if_it_is_configured() -> None:
    channel = [{"id": "slack:T1/C1", "corpora": ["web:searxng"]}]
    engine = {"type": "searxng", "url": SEARX, "visible_to": ["slack:T1/C1"]}
    settings = Settings.model_validate({"search_engine": engine, "channel": channel})
    assert settings.visible_to == {"web:searxng": ("slack:T1/C1",)}
    assert settings.readers == {"slack:T1/C1"}
    with pytest.raises(ValidationError, match="which no"):
        Settings.model_validate({"channel": channel})


def test_key_from_a_file_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "key"
    secret.write_text(f"{KEY}\n", encoding="utf-8")
    config = tmp_path / "footnote.toml"
    config.write_text('[search_engine]\ntype = "brave"\n', encoding="utf-8")
    monkeypatch.setenv("FOOTNOTE_SEARCH_ENGINE__API_KEY_FILE", str(secret))
    settings = load_settings(config)

    assert settings.search_engine.api_key.get_secret_value() == KEY
    assert collect_secrets(settings) == {KEY}
    assert KEY not in f"{settings!r}{settings.model_dump_json()}"
    other = settings.model_copy(update={"search_engine": Settings().search_engine})
    assert digest_settings(settings) != digest_settings(other)
    web = open_web_search(settings.search_engine)
    assert web
    assert web.corpus == "web:brave"
    assert KEY not in repr(web._engine)
