"""Slack's settings: secrets come from the usual variables, are never shown, and missing ones are named."""

from pathlib import Path

import pytest

from bot.answering.turn_record import digest_settings
from bot.settings.errors import SettingsError
from bot.settings.settings_errors import find_platform_faults
from bot.settings.settings_reader import load_settings
from bot.settings.tables.settings_tables import Settings

BOT, APP, SIGNING = "xoxb-hush-1", "xapp-hush-2", "hush-3"
NAMES = {"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": APP, "SLACK_SIGNING_SECRET": SIGNING}


def test_database_password_does_not_change_the_digest_of_settings() -> None:
    plain, secret = Settings(), Settings(database="postgresql://user:hush@host/db")

    assert digest_settings(plain) == digest_settings(secret)


@pytest.mark.parametrize(("mode", "given", "expected"), [
    ("socket", (), ""),
    ("socket", ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"), ""),
    ("http", ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"), ""),
    ("socket", ("SLACK_BOT_TOKEN",), 'Slack with mode = "socket" needs SLACK_APP_TOKEN, which is not set.'),
    ("http", ("SLACK_APP_TOKEN",), "needs SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET, which are not set."),
])  # fmt: skip
def test_missing_secrets_of_a_mode_are_named(
    mode: str, given: tuple[str, ...], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTNOTE_SLACK__MODE", mode)
    for name in given:
        monkeypatch.setenv(name, NAMES[name])
    faults = find_platform_faults(load_settings())

    assert expected in " ".join(map(str, faults))
    assert bool(faults) == bool(expected)


def test_token_in_place_of_a_file_name_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN_FILE", BOT)
    with pytest.raises(SettingsError, match="file that SLACK_BOT_TOKEN_FILE names cannot be read") as caught:
        load_settings()

    assert BOT not in f"{caught.value} {caught.value.hint}"


def test_api_address_of_slack_gets_a_slash_at_its_end() -> None:
    Path("footnote.toml").write_text("[slack]\napi_url = 'http://127.0.0.1:9/api'\n", encoding="utf-8")

    assert load_settings().slack.api_url == "http://127.0.0.1:9/api/"
