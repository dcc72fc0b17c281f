"""The app's manifest asks for exactly what the code uses, no more and no less."""

import re
from pathlib import Path

import pytest
import yaml

from bot.platforms.slack.events import PARSERS
from bot.platforms.slack.intake import ASK_COMMANDS, CONFIGURE_COMMAND, SHORTCUT
from bot.platforms.slack.setup import MESSAGE_SCOPES, SCOPES
from tests.platforms.slack.methods import METHODS
from tests.platforms.slack.posting import READ

ROOT = Path(__file__).parents[3]
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "bot/platforms/slack").glob("*.py")))
EVENTS_NEED = {
    "agent_session_stopped": set(),
    "app_home_opened": set(),
    "member_joined_channel": {"channels:read", "groups:read"},
    "app_mention": {"app_mentions:read"},
    "app_uninstalled": set(),
    "tokens_revoked": set(),
    "message.channels": {"channels:history"},
    "message.groups": {"groups:history"},
    "message.im": {"im:history"},
    "message.mpim": {"mpim:history"},
    **{name: {"channels:read"} for name in PARSERS if name.startswith("channel_")},
    **{name: {"groups:read"} for name in PARSERS if name.startswith("group_")},
}
"""From each event's page in Slack's reference."""


@pytest.fixture(scope="module")
def manifest():
    return yaml.safe_load((ROOT / "slack-manifest.yaml").read_text(encoding="utf-8"))


def called():
    """Return the methods that the code calls: their names appear in quotes."""
    return {name for name in re.findall(r'"([a-z]+(?:\.[a-zA-Z]+)+)"', CODE) if name in METHODS}


def test_manifest_requests_exactly_the_needed_scopes(manifest):
    # Of conversations.* it depends on the kind of channel, and all kinds are there; of others any one scope is enough.
    kinds = set(READ.values()) | {f"{scope.partition(':')[0]}:history" for scope in READ.values()}
    needed = [{"commands"}, *({scope} for scope in kinds)]
    needed += [{scope} for scopes in EVENTS_NEED.values() for scope in scopes]
    needed += [set(METHODS[name].scopes) for name in called() if METHODS[name].token == "bot" and METHODS[name].scopes]
    given = manifest["oauth_config"]["scopes"]["bot"]

    assert given == sorted(SCOPES)
    assert all(set(given) & any_of for any_of in needed)
    assert all(any(scope in any_of for any_of in needed) for scope in given)
    assert "user" not in manifest["oauth_config"]["scopes"]


def test_manifest_subscribes_to_exactly_the_parsed_events(manifest):
    read = {name for name in PARSERS if name != "message"} | set(MESSAGE_SCOPES)
    question = manifest["settings"]["event_subscriptions"]["bot_events"]

    assert question == sorted(read)
    assert set(question) == set(EVENTS_NEED)


def test_manifest_has_exactly_the_handled_commands(manifest):
    features = manifest["features"]

    assert [one["command"] for one in features["slash_commands"]] == [*ASK_COMMANDS, CONFIGURE_COMMAND]
    assert all(one["should_escape"] for one in features["slash_commands"])
    assert [(one["callback_id"], one["type"]) for one in features["shortcuts"]] == [(SHORTCUT, "message")]


def test_manifest_is_an_agent_with_a_lasting_token(manifest):
    assert manifest["features"]["agent_view"]["agent_description"]
    assert "assistant_view" not in manifest["features"]
    assert manifest["features"]["app_home"]["messages_tab_enabled"]
    assert manifest["features"]["app_home"]["home_tab_enabled"]
    assert manifest["settings"]["socket_mode_enabled"]
    assert manifest["settings"]["interactivity"]["is_enabled"]
    assert not manifest["settings"]["token_rotation_enabled"]


def test_methods_called_by_the_code_are_found():
    assert {"chat.postMessage", "conversations.history", "views.open", "users.info"} <= called()
