"""Facts about channels and users; unknown facts default to the restrictive value."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable
from bot.platforms.shared.lookup_cache import FRESH_SECONDS, PEOPLE_SECONDS
from bot.platforms.slack import SlackSettings
from bot.platforms.slack.directory import SlackDirectory, is_shared, is_stranger
from bot.platforms.slack.events import SlackBotIdentity

US = SlackBotIdentity("T1", "U0BOT", "B0BOT")
ORG = SlackBotIdentity("T1", "U0BOT", "B0BOT", "E1")
OWN = {"is_shared": False, "is_ext_shared": False, "is_org_shared": False}


class Slack:
    """Answers what a test says, and counts."""

    def __init__(self, **channels: Any) -> None:
        self.channels, self.calls, self.held = channels, list[str](), asyncio.Event()
        self.held.set()
        self.away = 0
        self.people: dict[str, Any] = {"U1": {"id": "U1", "team_id": "T1", "locale": "pt-BR"}, "UX": {"team_id": "T2"}}
        self.groups: dict[str, list[list[str]]] = {}

    async def __call__(self, route: Any, facts: Any) -> Any:
        method = str(route)
        self.calls.append(method)
        await self.held.wait()
        if self.away:
            self.away -= 1
            raise PlatformUnavailable("Slack is away.")
        if method == "usergroups.users.list":
            return self.page(**facts)
        known = self.channels if method == "conversations.info" else self.people
        found = known.get(facts.get("channel") or facts.get("user"))
        if found is None:
            raise CannotPost("Slack refused it.")
        return {"channel" if method == "conversations.info" else "user": found}

    def page(self, usergroup: str, cursor: str = "0") -> Any:
        """Return a page of a group's members."""
        if usergroup not in self.groups:
            raise CannotPost("missing_scope")
        pages = self.groups[usergroup]
        following = {"response_metadata": {"next_cursor": str(int(cursor) + 1)}} if int(cursor) + 1 < len(pages) else {}
        return {"users": pages[int(cursor)], **following}


def places(slack, clock=lambda: 0.0, us=US, readers=(), **settings):
    app = SimpleNamespace(settings=SimpleNamespace(slack=SlackSettings(**settings), readers=readers))
    return SlackDirectory(slack, us, app, clock)


@pytest.mark.parametrize(
    ("channel", "shared"),
    [
        (OWN, False),
        ({**OWN, "is_shared": True, "is_ext_shared": True}, True),
        ({**OWN, "is_shared": True, "is_org_shared": True}, False),
        ({**OWN, "is_shared": True, "is_org_shared": True, "is_ext_shared": True}, True),
        ({**OWN, "is_shared": True}, True),
        ({**OWN, "connected_team_ids": ["T2"]}, True),
        ({"is_im": True, "is_org_shared": False}, None),
        ({}, None),
    ],
)
def test_channel_is_shared_only_with_other_organisations(channel, shared):
    assert is_shared(channel) is shared


@pytest.mark.parametrize(
    ("user", "us", "strange"),
    [
        ({"team_id": "T1"}, US, False),
        ({"team_id": "T2"}, US, True),
        ({"team_id": "T1", "is_stranger": True}, US, True),
        ({}, US, True),
        ({"team_id": "T1", "deleted": True}, US, True),
        ({"team_id": "T3", "enterprise_user": {"enterprise_id": "E1"}}, ORG, False),
        ({"team_id": "T3", "enterprise_user": {"enterprise_id": "E2"}}, ORG, True),
        ({"team_id": "T3", "enterprise_user": {"enterprise_id": "E1"}}, US, True),
    ],
)
def test_stranger_is_of_another_organisation_or_deleted(user, us, strange):
    assert is_stranger(user, us) is strange


async def test_channel_lookup_is_cached_until_a_change_or_its_expiry():
    slack, now = Slack(C1=OWN), [0.0]
    known = places(slack, lambda: now[0])
    assert [await known.shared("C1") for _ in range(3)] == [False] * 3
    assert len(slack.calls) == 1
    slack.channels["C1"] = {**OWN, "is_ext_shared": True}
    known.forget("C1")
    assert await known.shared("C1")
    now[0] = FRESH_SECONDS + 1
    await known.shared("C1")

    assert len(slack.calls) == 3


async def test_concurrent_lookups_share_one_call():
    slack = Slack(C1=OWN)
    slack.held.clear()
    known = places(slack)
    asking = [asyncio.ensure_future(known.shared("C1")) for _ in range(100)]
    await asyncio.sleep(0)
    slack.held.set()

    assert await asyncio.gather(*asking) == [False] * 100
    assert len(slack.calls) == 1


async def test_channel_change_during_a_lookup_discards_the_result():
    slack = Slack(C1=OWN)
    slack.held.clear()
    known = places(slack)
    before = asyncio.ensure_future(known.shared("C1"))
    await asyncio.sleep(0)
    known.forget("C1")
    slack.held.set()
    await before
    slack.channels["C1"] = {**OWN, "is_ext_shared": True}

    assert await known.shared("C1")


async def test_failed_lookup_counts_as_shared_and_is_not_cached():
    slack = Slack()
    known = places(slack)
    assert await known.shared("C1")
    slack.channels["C1"] = OWN

    assert not await known.shared("C1")


async def test_dm_with_a_stranger_counts_as_shared():
    known = places(Slack())

    assert [
        (await known.asker("D1", user, direct=True)).shared_with_other_organisations for user in ("U1", "UX", "U?")
    ] == [
        False,
        True,
        True,
    ]
    assert (await known.asker("D1", "U1", direct=True)).kind == "dm"


async def test_shared_flag_of_an_event_is_cached():
    slack = Slack(C1=OWN)
    known = places(slack)
    asker = known.newcomer("C1", "U1", direct=False, shared=True)

    assert asker.shared_with_other_organisations
    assert await known.shared("C1")
    assert "conversations.info" not in slack.calls


async def test_language_follows_the_users_locale():
    known = places(Slack())

    assert [await known.language(user) for user in ("U1", "UX", "U?")] == ["pt", "", ""]


async def test_facts_about_the_asker_are_looked_up_again_before_the_answer():
    slack = Slack(C1=OWN)
    known = places(slack)
    slack.away = 4
    asker = await known.asker("C1", "U1", direct=False)
    with pytest.raises(PlatformUnavailable):
        await known.refresh_asker(asker)
    later, refused = (
        await known.refresh_asker(asker),
        await known.refresh_asker(await known.asker("C?", "U1", direct=False)),
    )

    assert asker.shared_with_other_organisations
    assert not later.shared_with_other_organisations
    assert refused.shared_with_other_organisations


@pytest.mark.parametrize("kind", ["is_restricted", "is_ultra_restricted"])
@pytest.mark.parametrize("direct", [True, False])
async def test_guests_differ_from_members_unless_settings_admit_them(kind, direct):
    slack, now = Slack(C1=OWN), [0.0]
    slack.people["UG"] = {"team_id": "T1", kind: True}
    strict, lenient = places(slack, lambda: now[0]), places(slack, guests=True)

    assert [(await strict.asker("C1", user, direct=direct)).guest for user in ("U1", "UG", "U?")] == [False, True, True]
    assert not (await lenient.asker("C1", "UG", direct=direct)).guest
    slack.people["U1"] = slack.people["UG"]
    now[0] = PEOPLE_SECONDS + 1
    assert (await strict.asker("C1", "U1", direct=direct)).guest


async def test_user_groups_are_read_over_all_pages():
    slack, now = Slack(C1=OWN), [0.0]
    slack.groups = {"S1": [["U2", "U3"], ["U1"]], "S9": [["U1"]]}
    readers = ["*", "slack:T1/S1", "slack:T1/S2", "slack:T2/S9", "slack:T1/U1", "discord:T1/S9"]
    known = places(slack, lambda: now[0], readers=readers)

    assert (await known.asker("D1", "U1", direct=True)).principals == ("slack:T1/S1",)
    assert (await known.asker("C1", "U1", direct=False)).principals == ()
    assert slack.calls.count("usergroups.users.list") == 3
    slack.groups["S1"] = [[]]
    now[0] = PEOPLE_SECONDS + 1
    assert (await known.refresh_asker(await known.asker("D1", "U1", direct=True))).principals == ()
