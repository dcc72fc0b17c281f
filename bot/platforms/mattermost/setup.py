"""Check Mattermost's address, token, teams and buttons for `footnote doctor` and `footnote setup`."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from bot.desk.platform_port import AccessDenied, PlatformError
from bot.doctor.diagnosis import CheckResult, Inspection
from bot.doctor.name_check import check_channel_names
from bot.platforms.mattermost import MattermostSettings
from bot.platforms.mattermost.client import ME, MY_CHANNELS, MY_TEAMS, open_api
from bot.platforms.mattermost.directory import list_channels, select_teams
from bot.platforms.platform_setup import BotLocation, PlatformSetup, SetupQuestion, Workspace
from bot.platforms.shared.payload_text import Json

_TOKEN = "Make a token for the bot account in Mattermost, under Integrations, Bot Accounts, and set MATTERMOST_TOKEN."  # noqa: S105
_AWAY = "Check whether this machine reaches [mattermost] url, and whether that is a Mattermost server's address."
_TEAMS = "Set [mattermost] teams to the teams in which the bot answers: {known}."


async def check_mattermost(scene: Inspection) -> Sequence[CheckResult]:
    """Check the token, the configured teams, and the readers and channel names of the settings."""
    settings = MattermostSettings.read_from(scene.settings)
    async with open_api(settings.token.get_secret_value(), settings.url) as call:
        try:
            me, teams = await call(ME, patience=0.0), await call(MY_TEAMS, patience=0.0)
            joined = {str(team["id"]): str(team["name"]) for team in teams}
            wanted = select_teams(joined, settings.teams)
            names = await check_channel_names(scene, "mattermost", lambda: list_channels(call, wanted))
        except AccessDenied:
            return (CheckResult("fail", "Mattermost: the token is refused.", _TOKEN),)
        except PlatformError as error:
            return (CheckResult("fail", f"Mattermost: {error}", _AWAY),)
    account = judge_account(settings, me, "Make a bot account: anyone with this token can do what the person can.")
    unread = list_deaf_readers(settings, joined, scene.settings.readers)
    return (*account, *judge_teams(settings, joined), *unread, *names)


def judge_account(settings: MattermostSettings, me: Json, hint: str) -> Sequence[CheckResult]:
    """Report whose account the token belongs to, and warn if it is a person's. Pure."""
    known = CheckResult("ok", f"Mattermost: the bot is @{me.get('username')} on {settings.url}.")
    if me.get("is_bot"):
        return (known,)
    line = f"Mattermost: {me.get('username')} is a person's account, not a bot's."
    return (known, CheckResult("warn", line, hint))


def judge_teams(settings: MattermostSettings, joined: Mapping[str, str]) -> Sequence[CheckResult]:
    """Report in which of its teams the bot answers, and which configured teams it is not in; pure."""
    known = ", ".join(f"{name} ({team})" for team, name in sorted(joined.items(), key=lambda item: item[1])) or "none"
    if not settings.teams:
        line = f"Mattermost: no team is configured; the bot is in {known}."
        return (CheckResult("fail", line, _TEAMS.format(known=known)),)
    results = list[CheckResult]()
    for wanted in settings.teams:
        team = next((id_ for id_, name in joined.items() if wanted in {id_, name}), "")
        if team:
            results.append(CheckResult("ok", f"Mattermost: it answers in {joined[team]} (mattermost:{team})."))
        else:
            hint = f"Add it there (team menu, Invite People), or take the team out of teams. It is in: {known}."
            results.append(CheckResult("fail", f"Mattermost: the bot is not in the team {wanted}.", hint))
    return results


def list_deaf_readers(
    settings: MattermostSettings, joined: Mapping[str, str], readers: Collection[str]
) -> Iterator[CheckResult]:
    """Warn of readers who can read nothing, because the bot does not answer in their teams; pure."""
    answered = {team for team, name in joined.items() if {team, name} & set(settings.teams)}
    for reader in sorted(readers):
        team, _, place = reader.removeprefix("mattermost:").partition("/")
        if reader.startswith("mattermost:") and place and team not in answered:
            hint = f"Write the team by its id, one of those above, or take {reader} out of visible_to."
            yield CheckResult("warn", f"Mattermost: {reader} reads nothing, because its team is not configured.", hint)


_URL = SetupQuestion(
    "url", "Address of the server", "It is what people open, such as https://chat.example.com.", secret=False
)
_TOKEN_QUESTION = SetupQuestion(
    "token", "Token of the bot account", "Mattermost shows it once, when the account is made."
)


def list_questions(_: MattermostSettings) -> Sequence[SetupQuestion]:
    return (_URL, _TOKEN_QUESTION)


async def try_answer(table: MattermostSettings, key: str) -> Sequence[CheckResult]:
    """Try the token; an address alone cannot be tried."""
    if key != "token":
        return ()
    async with open_api(table.token.get_secret_value(), table.url) as call:
        return judge_account(table, await call(ME, patience=0.0), "Make a bot account for it.")


async def locate_bot(table: MattermostSettings) -> BotLocation:
    async with open_api(table.token.get_secret_value(), table.url) as call:
        me, teams = await call(ME, patience=0.0), await call(MY_TEAMS, patience=0.0)
    mention = f"@{me.get('username')}"
    workspaces = tuple(Workspace(str(team["id"]), str(team["name"])) for team in teams)
    return BotLocation(mention, workspaces, f"Add {mention} to your team: team menu, Invite People.")


async def list_channels_by_name(table: MattermostSettings, workspace: str) -> Mapping[str, str]:
    async with open_api(table.token.get_secret_value(), table.url) as call:
        channels = await call(MY_CHANNELS, team=workspace, patience=0.0)
    return {str(channel["name"]): str(channel["id"]) for channel in channels if channel.get("type") in {"O", "P"}}


SETUP = PlatformSetup(
    steps=(
        "Make a bot account: Product menu, Integrations, Bot Accounts, Add Bot Account; copy its token.",
        "Add it to your team (team menu, Invite People), and to its channels.",
    ),
    list_questions=list_questions,
    try_answer=try_answer,
    locate_bot=locate_bot,
    list_channels=list_channels_by_name,
    invite="/invite {mention}",
    workspaces_key="teams",
)
