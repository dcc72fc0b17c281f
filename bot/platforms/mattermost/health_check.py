"""Check Mattermost's address, token, teams and buttons for `footnote doctor`."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from bot.desk.platform_port import AccessDenied, PlatformError
from bot.doctor.diagnosis import CheckResult, Inspection
from bot.doctor.name_check import check_channel_names
from bot.platforms.mattermost import MattermostSettings, read_mattermost_settings

_TOKEN = "Make a token for the bot account in Mattermost, under Integrations, Bot Accounts, and set MATTERMOST_TOKEN."  # noqa: S105
_AWAY = "See whether this machine reaches [mattermost] url, and whether that is a Mattermost server's address."
_TEAMS = "Set [mattermost] teams to those that are to be answered: {known}."


async def check_mattermost(scene: Inspection) -> Sequence[CheckResult]:
    """Whether the server takes the token, and whether the bot is in the teams that settings name."""
    settings = read_mattermost_settings(scene.settings)
    import aiohttp

    from bot.platforms.mattermost.client import ME, MY_TEAMS, MattermostApiClient, MattermostRateLimit
    from bot.platforms.mattermost.directory import list_channels, select_teams

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        call = MattermostApiClient(session, settings.token.get_secret_value(), settings.url, MattermostRateLimit())
        try:
            me, teams = await call(ME, patience=0.0), await call(MY_TEAMS, patience=0.0)
            joined = {str(one["id"]): str(one["name"]) for one in teams}
            wanted = select_teams(joined, settings.teams)
            names = await check_channel_names(scene, "mattermost", lambda: list_channels(call, wanted))
        except AccessDenied:
            return (CheckResult("fail", "Mattermost: the token is refused.", _TOKEN),)
        except PlatformError as error:
            return (CheckResult("fail", f"Mattermost: {error}", _AWAY),)
    known = CheckResult("ok", f"Mattermost: the bot is @{me.get('username')} on {settings.url}.")
    kind = () if me.get("is_bot") else (_warn_of_person(str(me.get("username"))),)
    unread = list_deaf_readers(settings, joined, scene.settings.readers)
    return (known, *kind, *judge_teams(settings, joined), *unread, *names)


def judge_teams(settings: MattermostSettings, joined: Mapping[str, str]) -> Sequence[CheckResult]:
    """Tell which teams are answered, by those that the bot is in; pure."""
    known = ", ".join(f"{name} ({team})" for team, name in sorted(joined.items(), key=lambda one: one[1])) or "none"
    if not settings.teams:
        lacking = f"Mattermost: no team is answered; the bot is in {known}."
        return (CheckResult("fail", lacking, _TEAMS.format(known=known)),)
    found = list[CheckResult]()
    for wanted in settings.teams:
        team = next((one for one, name in joined.items() if wanted in {one, name}), "")
        if team:
            found.append(CheckResult("ok", f"Mattermost: it answers in {joined[team]} (mattermost:{team})."))
        else:
            hint = f"Add it there (team menu, Invite People), or take the team out of teams. It is in: {known}."
            found.append(CheckResult("fail", f"Mattermost: the bot is not in the team {wanted}.", hint))
    return found


def list_deaf_readers(
    settings: MattermostSettings, joined: Mapping[str, str], readers: Collection[str]
) -> Iterator[CheckResult]:
    """Tell which readers are in no team that is answered, and so read nothing; pure."""
    answered = {team for team, name in joined.items() if {team, name} & set(settings.teams)}
    for reader in sorted(readers):
        team, _, place = reader.removeprefix("mattermost:").partition("/")
        if reader.startswith("mattermost:") and place and team not in answered:
            hint = f"Write the team by its id, one of those above, or take {reader} out of visible_to."
            yield CheckResult("warn", f"Mattermost: {reader} reads nothing, for its team is not answered.", hint)


def _warn_of_person(name: str) -> CheckResult:
    said = f"Mattermost: {name} is a person's account, not a bot's."
    return CheckResult("warn", said, "Make a bot account: what a person's token may do, whoever has it may do.")
