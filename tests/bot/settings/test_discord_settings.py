"""Discord's settings: its token comes from where bots keep it, is shown nowhere, and what is wrong is said."""

from pathlib import Path

import pytest

from bot.answering.turn_record import digest_settings
from bot.doctor.checks.settings_checks import list_configured_platforms
from bot.settings.errors import SettingsError
from bot.settings.settings_reader import load_settings

TOKEN = "hush-hush-1"


def test_discord_is_configured_once_there_is_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_configured_platforms(load_settings()) == frozenset()
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)

    assert list_configured_platforms(load_settings()) == {"discord"}


def test_the_token_comes_from_the_variable_that_bots_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)
    assert load_settings().discord.token.get_secret_value() == TOKEN
    monkeypatch.setenv("FOOTNOTE_DISCORD__TOKEN", "other")

    assert load_settings().discord.token.get_secret_value() == "other"


@pytest.mark.parametrize("name", ["DISCORD_TOKEN_FILE", "FOOTNOTE_DISCORD__TOKEN_FILE"])
def test_the_token_comes_from_a_file_that_a_variable_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("secret").write_text(f"{TOKEN}\n", encoding="utf-8")
    monkeypatch.setenv(name, "secret")

    assert load_settings().discord.token.get_secret_value() == TOKEN


def test_the_token_is_seen_nowhere_and_makes_no_difference_to_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for end in ("", "x"):
        monkeypatch.setenv("DISCORD_TOKEN", TOKEN + end)
        settings = load_settings()
        assert "hush" not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()
        digests.add(digest_settings(settings))

    assert len(digests) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[discord]\napi_url = ''", "discord.api_url must be an address"),
        ("[discord]\ngateway_url = 'https://x'", 'discord.gateway_url must begin with "wss://"'),
        ("[discord]\nservers = ['Lake']", "discord.servers has 'Lake', which is not an id"),
        ("[discord]\ndeny = ['@ann']", "discord.deny has '@ann', which is not an id"),
        ("[discord]\nadmins = ['slack:T/U']", "discord.admins names slack:T/U, who is not on Discord"),
        ("[discord]\ncooldown_seconds = -1", "discord.cooldown_seconds must be greater than or equal to 0, not -1."),
        ("[discord]\ntokn = 'hush'", "Did you mean `discord.token`?"),
        ("[discord]\ntoken = ['hush']", "discord.token must be a valid string."),
        ("discord = 'hush'", "discord must be a table."),
        ("[[channel]]\nid = 'discord:1/2'\nthreads = 'always'", "channel[1].threads must be 'never' or 'long'"),
    ],
)
def test_invalid_settings_show_no_secret(text: str, expected: str) -> None:
    Path("footnote.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings()

    assert expected in f"{caught.value} {caught.value.hint}"
    assert "hush" not in f"{caught.value} {caught.value.hint}"
