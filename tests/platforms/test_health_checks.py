"""The platforms' checks of `footnote doctor`, on the fake servers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.doctor.diagnosis import CheckResult, HealthCheck, Inspection, run_checks
from bot.platforms.discord.client import DiscordRateLimit
from bot.platforms.discord.setup import check_discord
from bot.platforms.mattermost.setup import check_mattermost
from bot.platforms.slack.setup import check_slack
from bot.settings.tables.settings_tables import Settings
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import state as discord
from tests.platforms.discord.state import GUILD, OTHER_GUILD
from tests.platforms.mattermost import server as mattermost_server
from tests.platforms.mattermost import state as mattermost
from tests.platforms.mattermost.state import BOT, OTHER_TEAM, TEAM
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import state as slack

NO_NAMES: Mapping[str, str] = {}
SECRETS = (*slack.SECRETS, *discord.SECRETS, mattermost.TOKEN)
Findings = list[tuple[str, str]]


async def run(
    check: HealthCheck,
    platform: Mapping[str, Any],
    readers: Sequence[str] = (),
    names: Mapping[str, str] = NO_NAMES,
) -> Findings:
    """Return the level and text of every finding. Each problem has a hint, and none contains a secret."""
    corpus = [{"name": "handbook", "visible_to": list(readers)}]
    settings = Settings.model_validate({**platform, "corpus": corpus})
    inspection = Inspection(settings, datetime.now(UTC), lambda _: None, names=names)  # type: ignore[arg-type, return-value]
    results = await run_checks([check], inspection)
    assert all(one.hint for one in results if one.level in {"warn", "fail"})
    assert not any(secret in f"{one.what} {one.hint}" for one in results for secret in SECRETS)
    return [(result.level, result.what) for result in results]


def problems(findings: Findings) -> list[str]:
    return [what for level, what in findings if level != "ok"]


async def check_at_slack(
    fake: Any, readers: Sequence[str] = (), names: Mapping[str, str] = NO_NAMES, **changes: Any
) -> Findings:
    given = {"api_url": fake.api, "bot_token": slack.BOT_TOKEN, "app_token": slack.APP_TOKEN, **changes}
    return await run(check_slack, {"slack": given}, readers, names)


async def _no_sleep(seconds: float) -> None: ...


async def _check_discord(inspection: Inspection) -> Sequence[CheckResult]:
    return await check_discord(inspection, DiscordRateLimit(sleep=_no_sleep))


async def check_at_discord(fake: Any, readers: Sequence[str] = (), **changes: Any) -> Findings:
    given = {"api_url": fake.api, "token": discord.BOT_TOKEN, "servers": [GUILD], "message_content": True, **changes}
    return await run(_check_discord, {"discord": given}, readers)


async def check_at_mattermost(url: str, readers: Sequence[str] = (), **changes: Any) -> Findings:
    given = {"url": url, "token": mattermost.TOKEN, "teams": ["team"], **changes}
    return await run(check_mattermost, {"mattermost": given}, readers)


# Slack.


async def test_slack_with_both_tokens_and_all_scopes_is_healthy() -> None:
    async with slack_server.serve() as fake:
        assert await check_at_slack(fake) == [
            ("ok", "Slack: the bot is footnote in Footnote test (slack:T1)."),
            ("ok", "Slack: the app token opens sockets."),
        ]


async def test_slack_missing_scopes_are_named() -> None:
    """The scope for user groups is needed only if settings name one."""
    async with slack_server.serve() as fake:
        fake.state.tokens[slack.BOT_TOKEN].scopes -= {"groups:history", "users:read", "usergroups:read"}
        findings = await check_at_slack(fake, ["*", "slack:T1/U1"])
        with_group = await check_at_slack(fake, ["slack:T1/S1"])

    missing = [f"Slack: the scope {scope} is missing." for scope in ("groups:history", "users:read")]
    assert sorted(what for level, what in findings if level == "fail") == missing
    assert ("fail", "Slack: the scope usergroups:read is missing.") in with_group


async def test_slack_refused_tokens_are_reported_with_their_error_code() -> None:
    async with slack_server.serve() as fake:
        findings = await check_at_slack(fake, bot_token="xoxb-1-2-other", app_token="xapp-1-other")

    assert [what for level, what in findings if level == "fail"] == [
        "Slack: the bot token is refused: invalid_auth.",
        "Slack: the app token opens no socket: invalid_auth.",
    ]


async def test_slack_outage_is_not_blamed_on_the_token() -> None:
    async with slack_server.serve() as fake:
        findings = await check_at_slack(fake, api_url="http://127.0.0.1:1/api/")

    assert [level for level, _ in findings] == ["fail", "skip", "fail"]
    assert "cannot be reached" in findings[0][1]
    assert findings[1][1] == "Slack: scopes were not checked, because Slack cannot be reached."


@pytest.mark.parametrize(("secret", "level"), [(slack.SIGNING_SECRET, "warn"), ("0123456789abcdef" * 2, "skip")])
async def test_slack_signing_secret_is_checked_by_its_shape(secret: str, level: str) -> None:
    async with slack_server.serve() as fake:
        findings = await check_at_slack(fake, mode="http", app_token="", signing_secret=secret)

    assert findings[-1][0] == level
    assert "signing secret" in findings[-1][1]


async def test_slack_channel_names_are_resolved_over_all_pages() -> None:
    async with slack_server.serve() as fake:
        fake.page = 2
        names = ["slack:#harbour", "slack:#not-ours", "slack:#random", "slack:#secret"]
        findings = await check_at_slack(fake, names, {"slack:#random": "slack:T1/C1"})

    moved = "is called #general now; the name now belongs to slack:T1/C3, which gets no access by it"
    assert findings[2:] == [
        ("ok", "Slack: slack:#harbour is slack:T1/C2."),
        ("fail", "Slack: slack:#not-ours gives no one access: Slack has no channel of that name that the bot can see."),
        ("warn", f"Slack: slack:#random still means slack:T1/C1, which {moved}."),
        ("ok", "Slack: slack:#secret is slack:T1/G1."),
    ]


# Discord.


async def test_discord_with_token_and_rights_is_healthy() -> None:
    async with discord_server.serve() as fake:
        findings = await check_at_discord(fake)

    assert {level for level, _ in findings} == {"ok"}
    assert findings[-1] == ("ok", "Discord: it may answer in Skarholm (discord:301).")


async def test_discord_missing_permissions_servers_and_intents_are_named() -> None:
    async with discord_server.serve() as fake:
        fake.state.guilds[GUILD].roles[GUILD].permissions &= ~(1 << 16)
        findings = await check_at_discord(fake, servers=[GUILD, "303"], message_content=False)
        no_server = await check_at_discord(fake, servers=[])

    assert ("fail", "Discord: the permission Read Message History is missing in Skarholm.") in findings
    assert ("fail", "Discord: the bot is not in the server 303.") in findings
    assert ("warn", "Discord: the intent Message Content is granted but not used.") in findings
    assert ("warn", "Discord: no server is configured, so only DMs are answered.") in no_server


async def test_discord_refused_token_differs_from_an_unreachable_server() -> None:
    async with discord_server.serve() as fake:
        ((level, what), (untried, _)) = await check_at_discord(fake, token="not.the.token")
        unreachable = await check_at_discord(fake, api_url="http://127.0.0.1:1/api")

    assert (level, what[:34], untried) == ("fail", "Discord: the bot token is refused.", "skip")
    assert unreachable[0][1].startswith("Discord: it cannot be reached.")
    assert unreachable[1][1].endswith("because Discord cannot be reached.")


async def test_discord_reader_in_an_unnamed_server_is_reported() -> None:
    async with discord_server.serve() as fake:
        findings = await check_at_discord(fake, ["*", "discord:301/201", "discord:9/5", "slack:T1/C1"])

    assert problems(findings) == ["Discord: discord:9/5 reads nothing, because its server is not configured."]


async def test_discord_channel_names_are_resolved() -> None:
    async with discord_server.serve() as fake:
        fake.state.channels["202"].kind = 2
        findings = await check_at_discord(fake, ["discord:#random", "discord:#harbour", f"discord:{GUILD}/#general"])
        both = await check_at_discord(fake, ["discord:#general"], servers=[GUILD, OTHER_GUILD])

    missing = "Discord has no channel of that name that the bot can see"
    assert findings[-3:] == [
        ("fail", f"Discord: discord:#harbour gives no one access: {missing}."),
        ("ok", "Discord: discord:#random is discord:301/203."),
        ("ok", "Discord: discord:301/#general is discord:301/201."),
    ]
    assert f"2 channels of that name: discord:301/201, discord:{OTHER_GUILD}/211" in both[-1][1]


# Mattermost.


async def test_mattermost_with_token_and_team_is_healthy() -> None:
    """Whether settings name the team by its name or its id."""
    async with mattermost_server.serve() as fake:
        findings = await check_at_mattermost(fake.url)
        by_id = await check_at_mattermost(f"{fake.url}/api/v4", teams=[TEAM])

        assert findings == by_id
        assert findings[0] == ("ok", f"Mattermost: the bot is @footnote on {fake.url}.")
        assert findings[-1] == ("ok", f"Mattermost: it answers in team (mattermost:{TEAM}).")


async def test_mattermost_teams_and_readers_without_effect_are_named() -> None:
    async with mattermost_server.serve() as fake:
        fake.state.users[BOT].bot = False
        no_team = await check_at_mattermost(fake.url, teams=[])
        other_team = await check_at_mattermost(fake.url, teams=["acme"])
        readers = ["*", f"mattermost:{TEAM}/x", f"mattermost:{OTHER_TEAM}/x", "slack:T1/C1"]
        unread = await check_at_mattermost(fake.url, readers)

    teams = f"otherteam ({OTHER_TEAM}), team ({TEAM})"
    assert no_team[1][0] == "warn"
    assert no_team[2] == ("fail", f"Mattermost: no team is configured; the bot is in {teams}.")
    assert other_team[-1] == ("fail", "Mattermost: the bot is not in the team acme.")
    assert problems(unread[2:]) == [
        f"Mattermost: mattermost:{OTHER_TEAM}/x reads nothing, because its team is not configured."
    ]


async def test_mattermost_refused_token_differs_from_an_unreachable_server() -> None:
    async with mattermost_server.serve() as fake:
        refused = await check_at_mattermost(fake.url, token="not.the.token")
        elsewhere = await check_at_mattermost(f"{fake.url}/elsewhere")
    unreachable = await check_at_mattermost("http://127.0.0.1:1")

    assert refused == [("fail", "Mattermost: the token is refused.")]
    assert elsewhere[0][0] == unreachable[0][0] == "fail"
    assert unreachable[0][1] == "Mattermost: Mattermost cannot be reached for GET /users/me."
