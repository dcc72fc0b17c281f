"""What `footnote doctor` finds at the fake Slack."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.doctor.diagnosis import Inspection, run_checks
from bot.platforms.slack.setup import check_slack as check
from bot.settings.tables.settings_tables import Settings
from tests.platforms.slack.server import serve
from tests.platforms.slack.state import APP_TOKEN, BOT_TOKEN, SECRETS, SIGNING_SECRET

NO_NAMES: Mapping[str, str] = {}


async def found(
    slack: Any, readers: Sequence[str] = (), names: Mapping[str, str] = NO_NAMES, **changes: Any
) -> list[tuple[str, str]]:
    given = {"api_url": slack.api, "bot_token": BOT_TOKEN, "app_token": APP_TOKEN, **changes}
    settings = Settings.model_validate({"slack": given, "corpus": [{"name": "handbook", "visible_to": list(readers)}]})
    scene = Inspection(settings, datetime.now(UTC), lambda _: None, names=names)  # type: ignore[arg-type, return-value]
    told = await run_checks([check], scene)
    assert all(one.hint for one in told if one.level in {"warn", "fail"})
    assert not any(secret in f"{one.what} {one.hint}" for one in told for secret in SECRETS)
    return [(one.level, one.what) for one in told]


async def test_all_is_well_where_both_tokens_are_taken_and_no_scope_is_missing() -> None:
    """And the team's id is told, which settings ask for."""
    async with serve() as slack:
        assert await found(slack) == [
            ("ok", "Slack: the bot is footnote in Footnote test (slack:T1)."),
            ("ok", "Slack: the app token opens sockets."),
        ]


async def test_a_missing_scope_is_named() -> None:
    """Each of them, and what it is for."""
    async with serve() as slack:
        slack.state.tokens[BOT_TOKEN].scopes -= {"groups:history", "users:read"}
        told = await found(slack)

    assert ("fail", "Slack: the scope groups:history was not given.") in told
    assert ("fail", "Slack: the scope users:read was not given.") in told
    assert [level for level, _ in told].count("fail") == 2


async def test_the_scope_for_user_groups_is_missed_where_settings_name_one() -> None:
    """Whose app was made without it needs it for nothing else."""
    async with serve() as slack:
        slack.state.tokens[BOT_TOKEN].scopes -= {"usergroups:read"}
        unneeded, needed = await found(slack, ["*", "slack:T1/U1"]), await found(slack, ["slack:T1/S1"])

    missing = ("fail", "Slack: the scope usergroups:read was not given.")
    assert (missing in unneeded, missing in needed) == (False, True)


async def test_tokens_that_are_refused_are_told_apart() -> None:
    """With Slack's own word for why."""
    async with serve() as slack:
        told = await found(slack, bot_token="xoxb-1-2-other", app_token="xapp-1-other")

    assert [what for level, what in told if level == "fail"] == [
        "Slack: the bot token is refused: invalid_auth.",
        "Slack: the app token opens no socket: invalid_auth.",
    ]


async def test_an_address_where_nobody_answers_is_no_refusal() -> None:
    """The token may be fine."""
    async with serve() as slack:
        told = await found(slack, api_url="http://127.0.0.1:1/api/")

    assert [level for level, _ in told] == ["fail", "skip", "fail"]
    assert "cannot be reached" in told[0][1]
    assert told[1][1] == "Slack: scopes were not looked at, for it could not be asked."


@pytest.mark.parametrize(("secret", "level"), [(SIGNING_SECRET, "warn"), ("0123456789abcdef" * 2, "skip")])
async def test_over_http_the_signing_secret_has_a_shape(secret: str, level: str) -> None:
    """It is the one thing that cannot be tried."""
    async with serve() as slack:
        told = await found(slack, mode="http", app_token="", signing_secret=secret)

    assert told[-1][0] == level
    assert "signing secret" in told[-1][1]


async def test_it_is_told_which_channel_a_name_means_and_where_it_was_told_for_another() -> None:
    """Of all pages of the list; a private channel that the bot is not in is none."""
    async with serve() as slack:
        slack.page = 2
        names = ["slack:#harbour", "slack:#not-ours", "slack:#random", "slack:#secret"]
        told = await found(slack, names, {"slack:#random": "slack:T1/C1"})

    moved = "is called #general now; the name is now that of slack:T1/C3, which gets nothing by it"
    assert told[2:] == [
        ("ok", "Slack: slack:#harbour is slack:T1/C2."),
        ("fail", "Slack: nobody reads by slack:#not-ours: Slack has no channel of that name that the bot can see."),
        ("warn", f"Slack: slack:#random is slack:T1/C1, which it was told for, {moved}."),
        ("ok", "Slack: slack:#secret is slack:T1/G1."),
    ]
