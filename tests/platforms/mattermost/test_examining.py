"""What `footnote doctor` finds at the fake Mattermost."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bot.doctor.diagnosis import Inspection, run_checks
from bot.platforms.mattermost.setup import check_mattermost
from bot.settings.tables.settings_tables import Settings
from tests.platforms.mattermost.server import serve
from tests.platforms.mattermost.state import BOT, OTHER_TEAM, TEAM, TOKEN


async def found(url: str, readers: Sequence[str] = (), **changes: Any) -> list[tuple[str, str]]:
    given = {"url": url, "token": TOKEN, "teams": ["team"], **changes}
    corpus = [{"name": "handbook", "visible_to": list(readers)}]
    settings = Settings.model_validate({"mattermost": given, "corpus": corpus})
    told = await run_checks([check_mattermost], Inspection(settings, datetime.now(UTC), lambda _: None))
    assert all(one.hint for one in told if one.level in {"warn", "fail"})
    assert not any(TOKEN in f"{one.what} {one.hint}" for one in told)
    return [(one.level, one.what) for one in told]


async def test_all_is_well_where_the_token_is_taken_and_a_team_is_answered() -> None:
    """The team is named as settings name it in ids, whether they name it by its name or its id."""
    async with serve() as server:
        told = await found(server.url)
        by_id = await found(f"{server.url}/api/v4", teams=[TEAM])

    assert told == by_id
    assert told[0] == ("ok", f"Mattermost: the bot is @footnote on {server.url}.")
    assert told[-1] == ("ok", f"Mattermost: it answers in team (mattermost:{TEAM}).")


async def test_what_lacks_is_named() -> None:
    """No team, one that the bot is not in, a reader whose team is not answered, a person's account."""
    async with serve() as server:
        server.state.users[BOT].bot = False
        none, strange = await found(server.url, teams=[]), await found(server.url, teams=["acme"])
        deaf = await found(server.url, ["*", f"mattermost:{TEAM}/x", f"mattermost:{OTHER_TEAM}/x", "slack:T1/C1"])

    assert none[1][0] == "warn"
    assert none[2] == (
        "fail",
        f"Mattermost: no team is answered; the bot is in otherteam ({OTHER_TEAM}), team ({TEAM}).",
    )
    assert strange[-1] == ("fail", "Mattermost: the bot is not in the team acme.")
    assert [what for level, what in deaf[2:] if level != "ok"] == [
        f"Mattermost: mattermost:{OTHER_TEAM}/x reads nothing, for its team is not answered."
    ]


async def test_a_refused_token_is_told_apart_from_no_answer() -> None:
    """And from what is no Mattermost at all."""
    async with serve() as server:
        refused = await found(server.url, token="not.the.token")
        elsewhere = await found(f"{server.url}/elsewhere")
    away = await found("http://127.0.0.1:1")

    assert refused == [("fail", "Mattermost: the token is refused.")]
    assert elsewhere[0][0] == away[0][0] == "fail"
    assert away[0][1] == "Mattermost: Mattermost cannot be reached for GET /users/me."
