"""Tests that no action reveals anything of an unreadable corpus, for any settings and users."""

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
from tests.bot.desk.fake_record import settings as record_settings
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
    """Return the corpora that a user may read, computed independently of `bot.access`."""
    names = {name for name in CORPORA if name in record.corpora}
    own = not by.shared_with_other_organisations
    here = f"slack:T1/{by.channel if by.kind == 'channel' else by.user}"
    named = {name for name in names if {here} & set(record.settings.visible_to[name])}
    named |= {name for name in names if own and "*" in record.settings.visible_to[name]}
    ceiling = record.narrowed.get(f"slack:T1/{by.channel}")
    return named if ceiling is None else named & set(ceiling["corpora"])


async def press(actions: AnswerActions, door: str, ticket: int, recorded: RecordedTurn | None, by: Asker) -> Any:
    try:
        match door:
            case "evidence":
                return await actions.evidence(ticket, by)
            case "sources":
                return await actions.sources(recorded.question(ticket).conversation if recorded else "nowhere", by)
            case "up":
                return await actions.feedback(ticket, by, "up", "a comment")
            case "ask":
                return await actions.ask_person(ticket, by)
            case _:
                return await actions.share(ticket, by)
    except ActionDenied as denied:
        return denied.words


def leaks(result: Any, may: set[str]) -> set[str]:
    """Return the unreadable corpora that a result names."""
    return {name for name in CORPORA if name in repr(result)} - may


@settings(max_examples=sample(300), deadline=None)
@given(turns=turned, readers=readers, narrowed=narrowed, presses=presses)
def test_actions_reveal_nothing_of_an_unreadable_corpus(turns, readers, narrowed, presses):
    asyncio.run(_pressed(turns, readers, narrowed, presses))


async def _pressed(turns, readers, narrowed, presses):
    record, platform = FakeRecord(record_settings(readers, ask=("slack:T1/U9",)), narrowed=narrowed), FakePlatform()
    actions = AnswerActions(record, {"slack": platform})
    for recorded in turns:
        record.add(recorded)
    for door, ticket, by in presses:
        recorded = turns[ticket - 1] if ticket <= len(turns) else None
        shared = bool(record.acts("share"))
        posts = len(platform.posts)
        result = await press(actions, door, ticket, recorded, by)
        may = allowed(record, by)
        assert not leaks(result, may)
        assert not leaks(list(platform.posts.values())[posts:], may)
        assert not leaks([text for _, text, _ in platform.called], set())
        if door != "sources" and (not recorded or not _may_see(recorded, by, shared=shared)):
            assert result == NOTHING
        if door == "evidence" and recorded and not set(recorded.cited + recorded.found + recorded.earlier) <= may:
            assert result == NOTHING
    assert all(channel[2] == ("U9",) for channel in platform.called)


def _may_see(recorded: RecordedTurn, by: Asker, *, shared: bool) -> bool:
    same_channel = recorded.asker.kind == by.kind == "channel" and recorded.asker.channel == by.channel
    return by.user == recorded.asker.user or (same_channel and (shared or not recorded.only_asker))


@settings(max_examples=sample(150), deadline=None)
@given(turns=turned, readers=readers, narrowed=narrowed, by=people, door=st.sampled_from(DOORS))
def test_sources_do_not_depend_on_unreadable_answers(turns, readers, narrowed, by, door):
    async def recorded(turns):
        record, platform = FakeRecord(record_settings(readers), narrowed=narrowed), FakePlatform()
        for one in turns:
            record.add(one)
        result = await press(AnswerActions(record, {"slack": platform}), door, 1, turns[0], by)
        return result, list(platform.posts.values()), record

    async def both():
        result, posts, record = await recorded(turns)
        may = allowed(record, by)
        without = [_without(turn, may) for turn in turns]
        if door == "sources":
            assert (await recorded(without))[0] == result
        if door == "share" and posts:
            assert not posts[0].left_out or set(turns[0].found) <= may

    asyncio.run(both())


def _without(recorded: RecordedTurn, may: set[str]) -> RecordedTurn:
    shown = {
        name: tuple(corpus for corpus in getattr(recorded, name) if corpus in may)
        for name in ("cited", "found", "earlier")
    }
    return replace(recorded, **shown)
