"""The fake platform itself: it refuses, fails and hands events out as real ones do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.access import Asker
from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.types import IntakeStatus, Place, PostedMessages, Question
from bot.views.turn_view import View
from pipeline.types import AnsweredSentence
from tests.platforms.dialects import DISCORD, SLACK, Dialect
from tests.platforms.fake_platform import FakePlatform, client
from tests.platforms.fake_server import BROKEN, LIMITED, LOST, RESET, FakeServer, Stumble, serve
from tests.platforms.wire import wired


class Ears:
    """A desk that keeps what it hears."""

    def __init__(self, taken: IntakeStatus = IntakeStatus.NEW) -> None:
        self.taken = taken
        self.questions: list[Question] = []
        self.heard = asyncio.Event()

    async def take(self, question: Question) -> IntakeStatus:
        self.questions.append(question)
        self.heard.set()
        return self.taken


@pytest.fixture(params=[SLACK, DISCORD], ids=lambda dialect: dialect.name)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeServer]:
    async with serve(request.param) as fake:
        yield fake


@pytest.fixture
async def platform(server: FakeServer) -> AsyncIterator[FakePlatform]:
    async with wired(server.url) as wire:
        yield client(wire, server.dialect)


def question(name: Any, **changes: Any) -> Question:
    """Return a question in a channel."""
    asker = Asker(name, "channel", workspace="T1", channel="C1", user="U1")
    place = Place(name, "T1", "C1", "100.1")
    facts = {"key": f"{name}:T1/C1/100.1", "task": "ask", "text": "When?", "asker": asker, "place": place}
    at = {"conversation": "c", "at": None, "message": "100.1"}
    return Question(**(facts | at | changes))


def view(*sentences: str, done: bool = True) -> View:
    """Return an answer."""
    return View(1, "en", sentences=tuple(AnsweredSentence(text, (1,)) for text in sentences), done=done)


async def test_what_is_shown_is_edited_lengthened_shortened_found_and_removed(
    server: FakeServer, platform: FakePlatform
) -> None:
    """One post at first, as many as are needed, and none in the end."""
    asked, long = question(server.dialect.name), ["word " * 300] * 12
    posted = await platform.show(asked, view("A."), PostedMessages())
    more = await platform.show(asked, view(*long), posted)

    assert len(more.messages) > 1
    assert await platform.find(asked) == more
    assert await platform.show(asked, view("B."), more) == posted
    assert [one.plain for one in server.ours()] == ["B. [1]"]
    await platform.remove(asked, posted)
    await platform.remove(asked, posted)
    assert (server.ours(), server.refused) == ([], ["message_not_found"])


async def test_it_refuses_what_platforms_refuse(server: FakeServer, platform: FakePlatform) -> None:
    """Text that is too long or empty, what is gone, what is not ours, an archived channel."""
    name, dialect = server.dialect.name, server.dialect
    facts: dict[str, Any] = {"channel": "C1", "thread": "", "key": "k", "buttons": []}
    theirs = await server.say("Hello")
    for parts in (["x" * (dialect.part + 1)], ["x"] * (dialect.parts + 1), [" "]):
        with pytest.raises(CannotPost):
            await platform.wire.call("post", parts=parts, **facts)
    with pytest.raises(CannotPost):
        await platform.wire.call("edit", message=theirs, parts=["x"], buttons=[])
    with pytest.raises(PostGone):
        await platform.show(question(name), view("A."), PostedMessages(("1",)))
    server.archived.add("C1")
    with pytest.raises(CannotPost):
        await platform.show(question(name), view("A."), PostedMessages())
    assert server.ours() == []


@pytest.mark.parametrize(
    ("stumble", "seconds", "posts"), [(LIMITED, 0.01, 0), (BROKEN, None, 0), (RESET, None, 0), (LOST, None, 1)]
)
async def test_it_stumbles_once_as_told(
    server: FakeServer, platform: FakePlatform, stumble: Stumble, seconds: float | None, posts: int
) -> None:
    """A lost answer leaves the post there; all others leave nothing."""
    asked = question(server.dialect.name)
    server.stumbles["post"].append(stumble)
    with pytest.raises(PlatformUnavailable) as error:
        await platform.show(asked, view("A."), PostedMessages())

    assert (error.value.seconds, server.posts[asked.key]) == (seconds, posts)
    assert await platform.show(asked, view("A."), PostedMessages())


async def test_events_come_until_they_are_acknowledged(server: FakeServer, platform: FakePlatform) -> None:
    """What is refused comes again to whoever connects next; what was taken comes again only when it is said so."""
    platform.desk = ears = Ears(IntakeStatus.REFUSED)
    first = await server.say("When?")
    async with platform.connected():
        await ears.heard.wait()
        ears.taken = IntakeStatus.NEW
        await server.redeliver()
        await server.until(lambda it: not it.unacked)
        await server.again(first)
        await server.until(lambda it: not it.unacked)

    assert len(ears.questions) == 3
    assert {one.key for one in ears.questions} == {f"{server.dialect.name}:T1/C1/{first}"}


async def test_a_conversation_is_handed_over_whole_over_its_pages(server: FakeServer, platform: FakePlatform) -> None:
    """Oldest first, the newest where not all are wanted, and none of what only one person sees."""
    root = await server.say("0")
    for number in range(1, 8):
        await server.say(str(number), thread=root)
    asks = await server.say("Now?", thread=root)
    asked = question(server.dialect.name, message=asks, place=Place(server.dialect.name, "T1", "C1", root))

    assert [one.text for one in await platform.heard(asked, 20)] == list("01234567")
    assert [one.text for one in await platform.heard(asked, 3)] == list("567")


async def test_what_only_one_sees_is_seen_by_nobody_else(server: FakeServer, platform: FakePlatform) -> None:
    """And it can be neither edited nor found."""
    asked = question(server.dialect.name, only_asker=True)
    posted = await platform.show(asked, view("A."), PostedMessages())

    assert [one.plain for one in server.ours(by="U1")] == ["A. [1]"]
    assert server.ours(by="U2") == server.ours() == []
    assert await platform.wire.call("find", key=asked.key) == []
    with pytest.raises(CannotPost):
        await platform.wire.call("edit", message=posted.messages[0], parts=["x"], buttons=[])


async def test_a_slow_call_is_waited_for(server: FakeServer, platform: FakePlatform) -> None:
    """Until the test lets it pass."""
    gate = asyncio.Event()
    server.stumbles["post"].append(Stumble(until=gate))
    showing = asyncio.create_task(platform.show(question(server.dialect.name), view("A."), PostedMessages()))
    await asyncio.sleep(0)
    assert not showing.done()
    gate.set()
    assert await showing


def test_dialects_differ_in_what_a_message_holds() -> None:
    """And each can be made smaller."""
    assert Dialect.smaller(DISCORD, 300).part == 300
    assert SLACK.message > DISCORD.message
