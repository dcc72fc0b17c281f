"""Secrets are recognised by their shape, without contacting a server."""

import pytest

from bot.settings.platform_registry import load_platforms
from bot.settings.secret_shapes import find_misplaced_secret
from bot.settings.settings_errors import find_serving_faults
from bot.settings.tables.settings_tables import Settings

DISCORD = "MTE4ODAwMDAwMDAwMDAwMDAw.GabcdE.abcdefghijklmnopqrstuvwxyz0123456789AB"
HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize(("platform", "key", "value", "description"), [
    ("slack", "bot_token", "xoxb-1-2-abc", ""),
    ("slack", "bot_token", "", ""),
    ("slack", "bot_token", "of another kind", "a space"),
    ("slack", "bot_token", "unknown-to-us", ""),
    ("slack", "bot_token", "xapp-1-2", "an app token (xapp-…)"),
    ("slack", "bot_token", "xoxp-1-2", "a user token"),
    ("slack", "bot_token", HEX, "a signing secret"),
    ("slack", "bot_token", "xoxb-1…9", "characters that no secret has"),
    ("slack", "app_token", "xoxb-1-2", "a bot token (xoxb-…)"),
    ("slack", "signing_secret", HEX, ""),
    ("slack", "signing_secret", "xapp-1", "an app token"),
    ("slack", "signing_secret", DISCORD, "of Discord"),
    ("discord", "token", DISCORD, ""),
    ("discord", "token", f'"{DISCORD}"', "quotes"),
    ("discord", "token", "118800000000000000", "an id"),
    ("discord", "token", HEX * 2, "public key"),
    ("discord", "token", "abcdefghijklmnopqrstuvwxyz-_0123", "a client secret"),
    ("discord", "token", "xoxb-1-2", "a bot token (xoxb-…) of Slack"),
])  # fmt: skip
def test_misplaced_secret_is_described(platform: str, key: str, value: str, description: str) -> None:
    fault = find_misplaced_secret(load_platforms().values(), load_platforms()[platform], key, value)

    assert bool(fault) == bool(description)
    if fault:
        assert description in fault.found
        assert "This setting needs a" in fault.hint
        assert value not in f"{fault.found} {fault.hint}"


def test_swapped_tokens_keep_a_server_from_starting() -> None:
    slack = {"bot_token": "xapp-1-2", "app_token": "xoxb-1-2"}
    faults = [f"{fault} {fault.hint}" for fault in find_serving_faults(Settings.model_validate({"slack": slack}))]

    assert [line.partition(". This setting needs")[0] for line in faults] == [
        "SLACK_BOT_TOKEN holds an app token (xapp-…). That belongs in SLACK_APP_TOKEN",
        "SLACK_APP_TOKEN holds a bot token (xoxb-…). That belongs in SLACK_BOT_TOKEN",
    ]
