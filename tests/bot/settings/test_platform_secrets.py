"""The secrets of platforms come from the usual variables or files, are never shown, and configure the platform."""

from pathlib import Path

import pytest

from bot.answering.turn_record import digest_settings
from bot.doctor.checks.settings_checks import list_configured_platforms
from bot.settings.platform_registry import load_platforms
from bot.settings.settings_reader import load_settings

SECRETS = [
    ("slack", "bot_token", "SLACK_BOT_TOKEN"), ("slack", "app_token", "SLACK_APP_TOKEN"),
    ("slack", "signing_secret", "SLACK_SIGNING_SECRET"), ("discord", "token", "DISCORD_TOKEN"),
]  # fmt: skip
for_each_secret = pytest.mark.parametrize(("platform", "key", "variable"), SECRETS)


def load_secret(platform: str, key: str) -> str:
    value: str = getattr(load_platforms()[platform].read(load_settings()), key).get_secret_value()
    return value


@for_each_secret
def test_own_variable_overrides_the_usual_variable_of_a_secret(
    platform: str, key: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list_configured_platforms(load_settings()) == frozenset()
    monkeypatch.setenv(variable, "hush-1")
    assert load_secret(platform, key) == "hush-1"
    assert list_configured_platforms(load_settings()) == {platform}
    Path("footnote.toml").write_text(f'[{platform}]\n{key} = "hush-2"\n', encoding="utf-8")
    assert load_secret(platform, key) == "hush-2"
    monkeypatch.setenv(f"FOOTNOTE_{platform}__{key}".upper(), "hush-3")
    assert load_secret(platform, key) == "hush-3"


@pytest.mark.parametrize("own", [False, True])
@for_each_secret
def test_secret_comes_from_the_named_file(
    platform: str, key: str, variable: str, *, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("secret").write_text("hush-1\n", encoding="utf-8")
    monkeypatch.setenv(f"FOOTNOTE_{platform}__{key}_FILE".upper() if own else f"{variable}_FILE", "secret")

    assert load_secret(platform, key) == "hush-1"


@for_each_secret
def test_secret_is_hidden_and_not_in_the_digest(
    platform: str, key: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del platform, key
    digests = set()
    for value in ("hush", "hush-2"):
        monkeypatch.setenv(variable, value)
        settings = load_settings()
        assert "hush" not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()
        digests.add(digest_settings(settings))

    assert len(digests) == 1
