"""Secrets come from the usual variables or files, are never shown, and missing ones are named."""

from pathlib import Path

import pytest

from bot.answering.turn_record import digest_settings
from bot.doctor.checks.settings_checks import list_configured_platforms
from bot.settings.errors import SettingsError
from bot.settings.settings_errors import find_platform_faults
from bot.settings.settings_reader import load_settings
from bot.settings.tables.settings_tables import Settings

SECRETS = [
    ("slack", "bot_token", "SLACK_BOT_TOKEN"), ("slack", "app_token", "SLACK_APP_TOKEN"),
    ("slack", "signing_secret", "SLACK_SIGNING_SECRET"), ("discord", "token", "DISCORD_TOKEN"),
    ("model", "api_key", "OPENAI_API_KEY"),
]  # fmt: skip
SLACK_SECRETS = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-2", "SLACK_SIGNING_SECRET": "three"}
for_each_secret = pytest.mark.parametrize(("table", "key", "variable"), SECRETS)


def load_secret(table: str, key: str) -> str:
    value: str = getattr(getattr(load_settings(), table), key).get_secret_value()
    return value


@for_each_secret
def test_own_variable_overrides_the_usual_variable_of_a_secret(
    table: str, key: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list_configured_platforms(load_settings()) == frozenset()
    monkeypatch.setenv(variable, "hush-1")
    assert load_secret(table, key) == "hush-1"
    assert list_configured_platforms(load_settings()) == {table} - {"model"}
    Path("footnote.toml").write_text(f'[{table}]\n{key} = "hush-2"\n', encoding="utf-8")
    assert load_secret(table, key) == "hush-2"
    monkeypatch.setenv(f"FOOTNOTE_{table}__{key}".upper(), "hush-3")
    assert load_secret(table, key) == "hush-3"


@pytest.mark.parametrize("own", [False, True])
@for_each_secret
def test_secret_comes_from_the_named_file(
    table: str, key: str, variable: str, *, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("secret").write_text("hush-1\n", encoding="utf-8")
    monkeypatch.setenv(f"FOOTNOTE_{table}__{key}_FILE".upper() if own else f"{variable}_FILE", "secret")

    assert load_secret(table, key) == "hush-1"


@for_each_secret
def test_secret_is_hidden_and_no_part_of_the_digest(
    table: str, key: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del table, key
    digests = set()
    for value in ("hush", "hush-2"):
        monkeypatch.setenv(variable, value)
        settings = load_settings()
        assert "hush" not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()
        digests.add(digest_settings(settings))

    assert len(digests) == 1


def test_digest_tells_whether_a_model_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    without = digest_settings(load_settings())
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    assert digest_settings(load_settings()) != without


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
        monkeypatch.setenv(name, SLACK_SECRETS[name])
    faults = find_platform_faults(load_settings())

    assert expected in " ".join(map(str, faults))
    assert bool(faults) == bool(expected)


@pytest.mark.parametrize(
    ("variable", "file"),
    [("SLACK_BOT_TOKEN", "xoxb-hush-1"), ("OPENAI_API_KEY", "missing"), ("FOOTNOTE_DATABASE", "missing")],
)
def test_unreadable_secret_file_is_an_error_that_hides_its_name(
    variable: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{variable}_FILE", file)
    with pytest.raises(SettingsError, match=f"file that {variable}_FILE names cannot be read") as caught:
        load_settings()

    assert file not in f"{caught.value} {caught.value.hint}"
