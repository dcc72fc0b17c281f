"""Discord's settings: its token comes from the usual variables, and is never shown."""

from pathlib import Path

import pytest

from bot.answering.turn_record import digest_settings
from bot.doctor.checks.settings_checks import list_configured_platforms
from bot.settings.settings_reader import load_settings

TOKEN = "hush-hush-1"


def test_discord_is_configured_by_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_configured_platforms(load_settings()) == frozenset()
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)

    assert list_configured_platforms(load_settings()) == {"discord"}


def test_token_comes_from_the_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)
    assert load_settings().discord.token.get_secret_value() == TOKEN
    monkeypatch.setenv("FOOTNOTE_DISCORD__TOKEN", "other")

    assert load_settings().discord.token.get_secret_value() == "other"


@pytest.mark.parametrize("name", ["DISCORD_TOKEN_FILE", "FOOTNOTE_DISCORD__TOKEN_FILE"])
def test_token_comes_from_a_named_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("secret").write_text(f"{TOKEN}\n", encoding="utf-8")
    monkeypatch.setenv(name, "secret")

    assert load_settings().discord.token.get_secret_value() == TOKEN


def test_token_is_hidden_and_not_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for end in ("", "x"):
        monkeypatch.setenv("DISCORD_TOKEN", TOKEN + end)
        settings = load_settings()
        assert "hush" not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()
        digests.add(digest_settings(settings))

    assert len(digests) == 1
