"""Whatever settings say and whoever presses what: nothing of a corpus that may not be read there comes out."""

import asyncio
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.access import Asker
from bot.desk.answer_actions import AnswerActions
from bot.desk.authorized_turn import ActionDenied
from pipeline.types import Status
from tests.bot.desk.fake_record import CORPORA, NOTHING, FakePlatform, FakeRecord, RecordedTurn, in_channel, in_dm
from tests.bot.desk.fake_record import settings as told_settings
from tests.thorough import sample

CHANNELS, USERS = ("C1", "C2", "C3"), ("U1", "U2")
READERS = ("*", *(f"slack:T1/{name}" for name in (*CHANNELS, *USERS)), "discord:T1/C1", "slack:T2/C1")
DOORS = ("evidence", "sources", "up", "ask", "share")

flags = st.fixed_dictionaries({"shared_with_other_organisations": st.booleans()})
in_channels = st.builds(
    lambda channel, user, flag: in_channel(channel, user, **flag),
    st.sampled_from(CHANNELS),
    st.sampled_from(USERS),
    flags,
)
in_dms = st.builds(lambda user, flag: in_dm(user, **flag), st.sampled_from(USERS), flags)
people = in_channels | in_dms
some = st.lists(st.sampled_from(CORPORA), unique=True).map(tuple)
turns = st.builds(
    RecordedTurn,
    asker=people,
    cited=some,
    found=some,
    earlier=some,
    only_asker=st.booleans(),
    task=st.sampled_from(("ask", "check")),
    status=st.sampled_from((Status.ANSWERED, Status.ANSWERED, Status.ABSTAINED)),
    language=st.sampled_from(("en", "de", "")),
)
turned = st.lists(turns, min_size=1, max_size=3)
readers = st.dictionaries(
    st.sampled_from(CORPORA), st.lists(st.sampled_from(READERS), max_size=3, unique=True).map(tuple)
)
narrowed = st.dictionaries(
    st.sampled_from([f"slack:T1/{name}" for name in CHANNELS]), st.fixed_dictionaries({"corpora": some.map(list)})
)
presses = st.lists(st.tuples(st.sampled_from(DOORS), st.integers(1, 4), people), max_size=8)


def allowed(record: FakeRecord, by: Asker) -> set[str]:
    """Say which corpora may be read by somebody, in words of this test's own."""
    names = {name for name in CORPORA if name in record.corpora}
    own = not by.shared_with_other_organisations
    here = f"slack:T1/{by.channel if by.kind == 'channel' else by.user}"
    named = {name for name in names if {here} & set(record.settings.visible_to[name])}
    named |= {name for name in names if own and "*" in record.settings.visible_to[name]}
    ceiling = record.narrowed.get(f"slack:T1/{by.channel}")
    return named if ceiling is None else named & set(ceiling["corpora"])


async def press(actions: AnswerActions, door: str, ticket: int, told: RecordedTurn | None, by: Asker) -> Any:
    try:
        match door:
            case "evidence":
                return await actions.evidence(ticket, by)
            case "sources":
                return await actions.sources(told.question(ticket).conversation if told else "nowhere", by)
            case "up":
                return await actions.feedback(ticket, by, "up", "a comment")
            case "ask":
                return await actions.ask_person(ticket, by)
            case _:
                return await actions.share(ticket, by)
    except ActionDenied as denied:
        return denied.words


def leaks(said: Any, may: set[str]) -> set[str]:
    """Return the corpora whose words stand in something, of those that may not be read."""
    return {name for name in CORPORA if name in repr(said)} - may


@settings(max_examples=sample(300), deadline=None)
@given(turns=turned, readers=readers, narrowed=narrowed, presses=presses)
def test_actions_reveal_nothing_of_an_unreadable_corpus(turns, readers, narrowed, presses):
    asyncio.run(_pressed(turns, readers, narrowed, presses))


async def _pressed(turns, readers, narrowed, presses):
    record, platform = FakeRecord(told_settings(readers, ask=("slack:T1/U9",)), narrowed=narrowed), FakePlatform()
    actions = AnswerActions(record, {"slack": platform})
    for told in turns:
        record.add(told)
    for door, ticket, by in presses:
        told = turns[ticket - 1] if ticket <= len(turns) else None
        shared = bool(record.acts("share"))
        posts = len(platform.posts)
        said = await press(actions, door, ticket, told, by)
        may = allowed(record, by)
        assert not leaks(said, may)
        assert not leaks(list(platform.posts.values())[posts:], may)
        assert not leaks([text for _, text, _ in platform.called], set())
        if door != "sources" and (not told or not _could_be_told(told, by, shared=shared)):
            assert said == NOTHING
        if door == "evidence" and told and not set(told.cited + told.found + told.earlier) <= may:
            assert said == NOTHING
    assert all(channel[2] == ("U9",) for channel in platform.called)


def _could_be_told(told: RecordedTurn, by: Asker, *, shared: bool) -> bool:
    there = told.asker.kind == by.kind == "channel" and told.asker.channel == by.channel
    return by.user == told.asker.user or (there and (shared or not told.only_asker))


@settings(max_examples=sample(150), deadline=None)
@given(turns=turned, readers=readers, narrowed=narrowed, by=people, door=st.sampled_from(DOORS))
def test_sources_do_not_depend_on_unreadable_answers(turns, readers, narrowed, by, door):
    async def told(turns):
        record, platform = FakeRecord(told_settings(readers), narrowed=narrowed), FakePlatform()
        for one in turns:
            record.add(one)
        said = await press(AnswerActions(record, {"slack": platform}), door, 1, turns[0], by)
        return said, list(platform.posts.values()), record

    async def both():
        said, posts, record = await told(turns)
        may = allowed(record, by)
        without = [_without(turn, may) for turn in turns]
        if door == "sources":
            assert (await told(without))[0] == said
        if door == "share" and posts:
            assert not posts[0].left_out or set(turns[0].found) <= may

    asyncio.run(both())


def _without(told: RecordedTurn, may: set[str]) -> RecordedTurn:
    kept = {name: tuple(one for one in getattr(told, name) if one in may) for name in ("cited", "found", "earlier")}
    return replace(told, **kept)
