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


def _secrets(settings: Settings) -> tuple[str, ...]:
    slack = settings.slack
    return tuple(secret.get_secret_value() for secret in (slack.bot_token, slack.app_token, slack.signing_secret))


def test_slack_is_configured_by_one_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not load_settings().slack.configured
    monkeypatch.setenv("SLACK_APP_TOKEN", APP)

    assert load_settings().slack.configured


def test_secrets_come_from_the_platform_s_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NAMES.items():
        monkeypatch.setenv(name, value)

    assert _secrets(load_settings()) == (BOT, APP, SIGNING)


def test_secrets_come_from_named_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NAMES.items():
        Path(name).write_text(f"{value}\n", encoding="utf-8")
        ours = name.replace("SLACK_", "FOOTNOTE_SLACK__") if name == "SLACK_APP_TOKEN" else name
        monkeypatch.setenv(f"{ours}_FILE", name)

    assert _secrets(load_settings()) == (BOT, APP, SIGNING)


def test_own_settings_win_over_the_platform_s_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("footnote.toml").write_text(f'[slack]\nbot_token = "{BOT}"\n', encoding="utf-8")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "other")

    assert _secrets(load_settings())[0] == BOT


def test_secrets_are_hidden_and_not_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for end in ("", "x"):
        for name, value in NAMES.items():
            monkeypatch.setenv(name, value + end)
        settings = load_settings()
        assert "hush" not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()
        digests.add(digest_settings(settings))

    assert len(digests) == 1


def test_the_database_s_password_is_no_part_of_a_digest() -> None:
    plain, secret = Settings(), Settings(database="postgresql://user:hush@host/db")

    assert digest_settings(plain) == digest_settings(secret)


@pytest.mark.parametrize(
    ("mode", "given", "expected"),
    [
        ("socket", (), ""),
        ("socket", ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"), ""),
        ("http", ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"), ""),
        ("socket", ("SLACK_BOT_TOKEN",), 'Slack with mode = "socket" needs SLACK_APP_TOKEN, which is not set.'),
        ("http", ("SLACK_APP_TOKEN",), "needs SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET, which are not set."),
    ],
)
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


def test_an_address_ends_in_a_slash() -> None:
    Path("footnote.toml").write_text("[slack]\napi_url = 'http://127.0.0.1:9/api'\n", encoding="utf-8")

    assert load_settings().slack.api_url == "http://127.0.0.1:9/api/"
