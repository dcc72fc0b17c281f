"""The platforms' checks of `footnote doctor`, on the fake servers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.doctor.diagnosis import CheckResult, Inspection, run_checks
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

SECRETS = (*slack.SECRETS, *discord.SECRETS, mattermost.TOKEN)
NOWHERE = "http://127.0.0.1:1"


async def _no_sleep(seconds: float) -> None: ...


async def _check_discord(inspection: Inspection) -> Sequence[CheckResult]:
    return await check_discord(inspection, DiscordRateLimit(sleep=_no_sleep))


PLATFORMS: Mapping[str, tuple[Any, Any, Mapping[str, Any]]] = {
    "slack": (slack_server.serve, check_slack, {"bot_token": slack.BOT_TOKEN, "app_token": slack.APP_TOKEN}),
    "discord": (
        discord_server.serve,
        _check_discord,
        {"token": discord.BOT_TOKEN, "servers": [GUILD], "message_content": True},
    ),
    "mattermost": (mattermost_server.serve, check_mattermost, {"token": mattermost.TOKEN, "teams": ["team"]}),
}
"""The fake server, the check, and valid settings of each platform."""


@dataclass(frozen=True)
class Case:
    """A state of the server and the settings. `names`: the channel ids that names stood for earlier."""

    platform: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    readers: Sequence[str] = ()
    prepare: Callable[[Any], object] = lambda _: None
    names: Mapping[str, str] = field(default_factory=dict)


def lose_scopes(*scopes: str) -> Callable[[Any], object]:
    return lambda fake: fake.state.tokens[slack.BOT_TOKEN].scopes.difference_update(scopes)


def hide_history(fake: Any) -> None:
    fake.state.guilds[GUILD].roles[GUILD].permissions &= ~(1 << 16)


def show_two_channels_a_page(fake: Any) -> None:
    fake.page = 2


def make_voice_channel(fake: Any) -> None:
    fake.state.channels["202"].kind = 2


def make_person(fake: Any) -> None:
    fake.state.users[BOT].bot = False


HTTP = {"mode": "http", "app_token": "", "signing_secret": "0123456789abcdef" * 2}
REFUSED = {"bot_token": "xoxb-1-2-other", "app_token": "xapp-1-other"}
NAMES = ["slack:#harbour", "slack:#not-ours", "slack:#random", "slack:#secret"]
D_NAMES = ["discord:#random", "discord:#harbour", f"discord:{GUILD}/#general"]
MISSING = lose_scopes("groups:history", "users:read", "usergroups:read")
TEAM_READERS = ["*", f"mattermost:{TEAM}/x", f"mattermost:{OTHER_TEAM}/x", "slack:T1/C1"]
CASES: Mapping[str, Case] = {
    "slack": Case("slack"),
    "slack without scopes": Case("slack", {}, ["*", "slack:T1/U1"], MISSING),
    "slack without a scope that a reader needs": Case("slack", {}, ["slack:T1/S1"], lose_scopes("usergroups:read")),
    "slack with refused tokens": Case("slack", REFUSED),
    "slack unreachable": Case("slack", {"api_url": f"{NOWHERE}/api/"}),
    "slack with an invalid signing secret": Case("slack", {**HTTP, "signing_secret": slack.SIGNING_SECRET}),
    "slack with a signing secret": Case("slack", HTTP),
    "slack with names": Case("slack", {}, NAMES, show_two_channels_a_page, {"slack:#random": "slack:T1/C1"}),
    "discord": Case("discord"),
    "discord without rights": Case("discord", {"servers": [GUILD, "303"], "message_content": False}, (), hide_history),
    "discord without servers": Case("discord", {"servers": []}),
    "discord with a refused token": Case("discord", {"token": "not.the.token"}),
    "discord unreachable": Case("discord", {"api_url": f"{NOWHERE}/api"}),
    "discord with foreign readers": Case("discord", {}, ["*", "discord:301/201", "discord:9/5", "slack:T1/C1"]),
    "discord with names": Case("discord", {}, D_NAMES, make_voice_channel),
    "discord with an ambiguous name": Case("discord", {"servers": [GUILD, OTHER_GUILD]}, ["discord:#general"]),
    "mattermost": Case("mattermost"),
    "mattermost with a team id": Case("mattermost", {"teams": [TEAM]}),
    "mattermost as a person without teams": Case("mattermost", {"teams": []}, (), make_person),
    "mattermost with an unknown team": Case("mattermost", {"teams": ["acme"]}),
    "mattermost with foreign readers": Case("mattermost", {}, TEAM_READERS),
    "mattermost with a refused token": Case("mattermost", {"token": "not.the.token"}),
    "mattermost unreachable": Case("mattermost", {"url": NOWHERE}),
}


async def test_doctor_reports_every_finding_with_a_hint() -> None:
    shown = list[str]()
    for name, case in CASES.items():
        serve, check, usual = PLATFORMS[case.platform]
        async with serve() as fake:
            case.prepare(fake)
            address = {"url": fake.url} if case.platform == "mattermost" else {"api_url": fake.api}
            corpus = [{"name": "handbook", "visible_to": list(case.readers)}]
            settings = Settings.model_validate({case.platform: {**address, **usual, **case.settings}, "corpus": corpus})
            inspection = Inspection(settings, datetime.now(UTC), lambda _: None, names=case.names)  # type: ignore[arg-type, return-value]
            results = await run_checks([check], inspection)
        shown += [f"# {name}", *(f"{one.level}: {one.what.replace(fake.url, 'http://SERVER')}" for one in results), ""]
        assert all(result.hint for result in results if result.level in {"warn", "fail"})
        assert not any(secret in f"{result.what} {result.hint}" for result in results for secret in SECRETS)

    assert "\n".join(shown) == Path(__file__).with_name("health_checks.txt").read_text(encoding="utf-8")
