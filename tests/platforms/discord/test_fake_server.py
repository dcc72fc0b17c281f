"""The fake Discord itself: its refusals, rate limits and notifications."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.platforms.clock import ManualClock
from tests.platforms.discord import limits
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import (
    APP,
    BOT,
    BOT_TOKEN,
    HISTORY,
    MENTION_EVERYONE,
    PUBLIC_THREADS,
    V2,
    Interaction,
)

pytestmark = pytest.mark.fakes
HERE = "/channels/201/messages"
KNOWN = {"Authorization": f"Bot {BOT_TOKEN}"}
NONE = object()


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with serve(clock=ManualClock(), pace=100) as fake:
        yield fake
        assert fake.errors == []


async def send(discord: FakeDiscord, path: str = HERE, body: Any = NONE, verb: str = "POST", **options: Any) -> Any:
    """Call the API, and return the status, the headers and the body."""
    given = {"headers": KNOWN, **({} if "data" in options else {"json": {"content": "x"} if body is NONE else body})}
    async with aiohttp.request(verb, discord.api + path, **given | options) as response:
        text = response.content_type != "application/json"
        return response.status, response.headers, await (response.text() if text else response.json())


async def code(discord: FakeDiscord, path: str = HERE, body: Any = NONE, verb: str = "POST", **options: Any) -> int:
    """Return the code of a refusal; 0 if there is none."""
    status, _, answer = await send(discord, path, body, verb, **options)
    return answer["code"] if status >= 400 else 0


def text(content: str = "x") -> dict[str, Any]:
    return {"type": 10, "content": content}


def row(*inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": 1, "components": list(inner)}


def button(**more: Any) -> dict[str, Any]:
    return {"type": 2, "style": 1, "label": "x", "custom_id": "x", **more}


def container(*inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": 17, "components": list(inner)}


def new(*components: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"flags": V2, "components": list(components), **more}


def old(*components: dict[str, Any]) -> dict[str, Any]:
    return {"content": "x", "components": list(components)}


IN_ROW = "components/0/components/0"
EXCLUSIVE = {"parse": ["users"], "users": ["101"]}
INVALID: list[tuple[dict[str, Any], str, str]] = [
    ({"content": "x" * 2_001}, "content", "must be less than 2001 characters"),
    ({"content": "🌊" * 1_001}, "content", "must be less than 2001 characters"),
    ({"content": 7}, "content", "must be a string"),
    ({"content": "x", "embeds": [{"title": "x"}]}, "", "invalid additional property: embeds"),
    ({"content": "x", "allowed_mentions": {"parse": ["all"]}}, "allowed_mentions/parse/0", "must be one of"),
    ({"content": "x", "allowed_mentions": EXCLUSIVE}, "allowed_mentions", "mutually exclusive"),
    ({"content": "x", "message_reference": {"message_id": "7"}}, "message_reference", "unknown message"),
    (new(text(), content="x"), "content", "cannot be used with IS_COMPONENTS_V2"),
    (new(container(*[text()] * 40)), "components", "no more than 40 components"),
    (new(text("x" * 2_001), container(text("x" * 2_000))), "components", "all text must be less than 4001"),
    (new(text(" ")), "components/0/content", "must be more than 0 characters"),
    (new(container(container(text()))), f"{IN_ROW}/type", "unsupported type: 17"),
    (old(text()), "components/0/type", "unsupported type: 10"),
    (old(row(*[button(custom_id=str(one)) for one in range(6)])), "components/0/components", "no more than 5 items"),
    (old(row(button(), button())), "components/0/components/1/custom_id", "already exists"),
    (old(row({"type": 2, "style": 1, "label": "x"})), IN_ROW, "missing required field: custom_id"),
]


@pytest.mark.parametrize(("body", "path", "objection"), INVALID)
async def test_invalid_message_is_refused_with_its_path(
    discord: FakeDiscord, body: dict[str, Any], path: str, objection: str
) -> None:
    status, _, answer = await send(discord, body=body)

    assert (status, answer["code"], discord.posts) == (400, 50035, 0)
    where = f"/{path}" if path else ""
    assert any(objection in one and one.endswith(f"[json-pointer:{where}]") for one in answer["errors"])


async def test_messages_at_their_limits_are_accepted(discord: FakeDiscord) -> None:
    full = new(container(*[text("x" * 100)] * 30, text("x" * 1_000), row(button(), button(custom_id="y"))))
    await send(discord, body={"content": "x" * 2_000})
    _, _, sent = await send(discord, body=full)

    assert [component["id"] for component in sent["components"][0]["components"][-1]["components"]] == [34, 35]
    assert discord.refused == []


async def test_missing_rights_are_refused(discord: FakeDiscord) -> None:
    people = discord.people
    theirs, tidied = await people.say("?", user="102"), await people.say("?", channel="207")
    discord.state.users["103"].closed = True
    await people.deny("202", HISTORY)
    reply = {"content": "x", "message_reference": {"message_id": await people.say("?", channel="202")}}
    codes = {
        "/channels/999/messages": 10003,
        "/channels/204/messages": 50001,
        "/channels/205/messages": 50013,
        "/channels/206/messages": 50008,
        f"/channels/{discord.state.dm('103').id}/messages": 50007,
    }
    assert {path: await code(discord, path) for path in codes} == codes
    assert await code(discord, body={"content": " "}) == 50006
    assert await code(discord, f"{HERE}/{theirs}", verb="PATCH") == 50005
    assert await code(discord, f"{HERE}/{theirs}", verb="DELETE") == 50013
    assert await code(discord, f"{HERE}/7", verb="GET") == 10008
    assert await code(discord, "/channels/202/messages", reply) == 160002
    assert await code(discord, f"/channels/207/messages/{tidied}", verb="DELETE") == 0
    await people.kick()
    assert await code(discord) == 50001
    assert discord.posts == 0


async def test_thread_routes_refuse_invalid_names_and_archived_threads(discord: FakeDiscord) -> None:
    """A post opens an archived thread, an edit does not."""
    people = discord.people
    asked = await people.say("?")
    begin, inside = f"{HERE}/{asked}/threads", f"/channels/{asked}/messages"
    assert await code(discord, begin, {"name": "x" * 101}) == 50035
    assert await code(discord, begin, {"name": "x" * 100}) == 0
    assert await code(discord, begin, {"name": "again"}) == 160004
    _, _, sent = await send(discord, inside)
    await people.archive(asked)
    assert await code(discord, f"{inside}/{sent['id']}", verb="PATCH") == 50083
    assert await code(discord, f"{inside}/{sent['id']}", verb="DELETE") == 50083
    assert await code(discord, inside) == 0
    assert not discord.state.channels[asked].archived
    await people.archive(asked, lock=True)
    assert await code(discord, inside) == 50083
    await people.deny("202", PUBLIC_THREADS)
    other = await people.say("?", channel="202")
    assert await code(discord, f"/channels/202/messages/{other}/threads", {"name": "x"}) == 50013


async def test_components_cannot_be_removed_by_an_edit(discord: FakeDiscord) -> None:
    """Content must be taken away before components are given."""
    _, _, ours = await send(discord, body=new(text()))
    _, _, plain = await send(discord)
    assert await code(discord, f"{HERE}/{ours['id']}", {"content": "x"}, "PATCH") == 50035
    assert await code(discord, f"{HERE}/{ours['id']}", {"components": [text("y")]}, "PATCH") == 0
    assert await code(discord, f"{HERE}/{plain['id']}", new(text()), "PATCH") == 50035
    _, _, edited = await send(discord, f"{HERE}/{plain['id']}", new(text(), content=None), "PATCH")

    assert edited["flags"] & V2


async def test_malformed_requests_are_refused(discord: FakeDiscord) -> None:
    plain, typed = ({**KNOWN, "Content-Type": kind} for kind in ("text/plain", "application/json"))
    requests: list[dict[str, Any]] = [
        {"headers": {}},
        {"headers": {"Authorization": "Bot another"}},
        {"headers": {"Authorization": BOT_TOKEN}},
        {"data": '{"content": "x"}', "headers": plain},
        {"data": '{"content"', "headers": typed},
    ]
    answers = [await send(discord, **request) for request in requests]
    answers.append(await send(discord, "/nowhere", verb="GET"))

    listed = [(status, body["code"]) for status, _, body in answers]
    assert listed == [(401, 0), (401, 0), (401, 0), (400, 50035), (400, 50109), (404, 0)]
    assert discord.posts == 0


# Limits in time.


async def test_channel_is_limited_to_five_posts_per_five_seconds(discord: FakeDiscord) -> None:
    left = [(await send(discord))[1]["X-RateLimit-Remaining"] for _ in range(5)]
    status, headers, body = await send(discord)
    other = await send(discord, "/channels/202/messages")
    await discord.clock.advance(5)
    later = await send(discord)

    assert left == list("43210")
    assert (status, headers["Via"], headers["X-RateLimit-Scope"], body["global"]) == (429, "1.1 google", "user", False)
    assert body["retry_after"] == 5 / 100
    assert (other[0], later[0], len(discord.limited)) == (200, 200, 1)


async def test_all_routes_are_limited_to_fifty_requests_per_second(discord: FakeDiscord) -> None:
    statuses = [(await send(discord, "/users/@me", verb="GET"))[0] for _ in range(limits.GLOBAL)]
    status, headers, body = await send(discord)

    assert 429 not in statuses
    assert (status, headers["X-RateLimit-Global"], body["global"]) == (429, "true", True)


async def test_too_many_invalid_requests_ban_the_address(discord: FakeDiscord) -> None:
    discord.rates.invalid_most = 3
    for _ in range(3):
        await send(discord, headers={})
    status, headers, body = await send(discord)
    await discord.clock.advance(limits.INVALID_SECONDS)

    assert (status, "Via" in headers, body) == (429, False, "error code: 1015")
    assert (await send(discord))[0] == 200


async def test_nonce_returns_the_first_message_for_some_minutes(discord: FakeDiscord) -> None:
    body = {"content": "one", "nonce": "q1.0", "enforce_nonce": True}
    first = (await send(discord, body=body))[2]
    again = (await send(discord, body={**body, "content": "two"}))[2]
    await discord.clock.advance(limits.NONCE_SECONDS + 1)
    later = (await send(discord, body=body))[2]

    assert (first["id"], "one") == (again["id"], again["content"])
    assert later["id"] != first["id"]
    assert discord.posts == 2


# Interactions.


async def use(discord: FakeDiscord, **options: Any) -> Interaction:
    """Register a command, and use it."""
    command = {"name": "ask", "description": "d", "options": [{"type": 3, "name": "question", "description": "d"}]}
    await send(discord, f"/applications/{APP}/commands", [command], "PUT")
    used: Interaction = await discord.people.command("ask", question="When?", **options)
    return used


def callback(used: Interaction) -> str:
    return f"/interactions/{used.id}/{used.token}/callback"


def hook(used: Interaction, message: str = "") -> str:
    return f"/webhooks/{APP}/{used.token}" + (f"/messages/{message}" if message else "")


async def test_interaction_is_answered_once_within_three_seconds_and_fifteen_minutes(discord: FakeDiscord) -> None:
    first, late = await use(discord), await use(discord)
    assert await code(discord, hook(first, "@original"), verb="PATCH") == 10015
    assert await code(discord, callback(first), {"type": 4, "data": {"content": "Well"}}) == 0
    assert await code(discord, callback(first), {"type": 5}) == 40060
    await discord.clock.advance(limits.ACK_SECONDS + 0.1)
    assert await code(discord, callback(late), {"type": 5}) == 10062
    await discord.clock.advance(limits.TOKEN_SECONDS - 10)
    assert await code(discord, hook(first, "@original"), {"content": "Better"}, "PATCH") == 0
    await discord.clock.advance(10)
    assert await code(discord, hook(first, "@original"), verb="PATCH") == 50027
    assert await code(discord, hook(first)) == 50027
    assert discord.seen("201", by="101") == "#general\nFootnote: Better (edited)\n  The application did not respond"


async def test_first_follow_up_fills_a_deferred_response(discord: FakeDiscord) -> None:
    """It is as private as the deferral; once deleted it is gone."""
    used = await use(discord)
    await send(discord, callback(used), {"type": 5, "data": {"flags": 64}})
    assert discord.seen("201", by="101") == "#general\nFootnote (only you see this): Footnote is thinking…"
    _, _, message = await send(discord, hook(used), {"content": "In 1887."})

    assert (message["id"], message["flags"] & 64) == (used.original, 64)
    assert discord.seen("201", by="102") == "#general"
    assert await code(discord, hook(used, "@original"), verb="DELETE") == 0
    assert await code(discord, hook(used, "@original"), verb="PATCH") == 10008


async def test_user_installation_has_five_follow_ups_and_no_rights(discord: FakeDiscord) -> None:
    used = await use(discord, channel="221")
    assert BOT not in discord.state.guilds["303"].members
    await send(discord, callback(used), {"type": 4, "data": {"content": "0"}})
    discord.rates.per_route["follow_up"] = (50, 1)
    assert [await code(discord, hook(used)) for _ in range(limits.FOLLOW_UPS + 1)] == [0] * limits.FOLLOW_UPS + [40094]
    assert await code(discord, "/channels/221/messages") == 50001


@pytest.mark.parametrize(
    "command",
    [
        {"name": "Ask", "description": "d"},
        {"name": "ask", "description": ""},
        {"name": "ask", "description": "d", "options": [{"type": 3, "name": "q"}]},
        {"name": "m" * 33, "type": 3},
        {"name": "ask", "description": "d", "name_localizations": {"xx": "ask"}},
    ],
)
async def test_invalid_command_refuses_all_commands(discord: FakeDiscord, command: dict[str, Any]) -> None:
    await use(discord)
    before = list(discord.state.commands)
    good = {"name": "good", "description": "d"}
    _, _, body = await send(discord, f"/applications/{APP}/commands", [good, command], "PUT")

    assert (body["code"], "[json-pointer:/1" in str(body["errors"])) == (50035, True)
    assert discord.state.commands == before


# Notifications.


@pytest.mark.parametrize(
    ("allowed", "notified"),
    [
        (None, ["101", "102", "&402"]),
        ({"parse": []}, []),
        ({"parse": [], "replied_user": True}, ["101"]),
        ({"parse": ["users"]}, ["102"]),
        ({"parse": ["roles", "everyone"]}, ["&402"]),
        ({"parse": [], "users": ["102"], "roles": ["402"]}, ["102", "&402"]),
        ({"users": ["103"]}, []),
    ],
)
async def test_allowed_mentions_decide_who_is_notified(discord: FakeDiscord, allowed: Any, notified: list[str]) -> None:
    """Without them everybody is, and the author that is replied to; everyone only with the right to that."""
    content = "\\<@102> `<@&402>` <@&401> @everyone https://a.example <https://b.example>"
    body = {"content": content, "message_reference": {"message_id": await discord.people.say("?")}}
    await send(discord, body=body | ({} if allowed is None else {"allowed_mentions": allowed}))

    assert sorted(one for _, one in discord.notified) == sorted(notified)
    assert len(discord.pings) >= 4
    assert discord.unfurled == ["https://a.example"]


async def test_right_to_mention_everyone_notifies_everyone(discord: FakeDiscord) -> None:
    discord.state.guilds["301"].roles["301"].permissions |= MENTION_EVERYONE
    await send(discord, body={"content": "@here <@&401>"})
    await send(discord, body={"content": "@here <@&401>", "allowed_mentions": {"parse": ["users"]}})

    assert [one for _, one in discord.notified] == ["&401", "everyone"]
