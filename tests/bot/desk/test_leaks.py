"""Two users of any standing, three channels, DMs, three corpora, every set of readers: nothing leaves its scope.

Everything that the platform receives is looked at, and everything that comes back to whoever presses anything.
"""

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bot.access import Exclusion
from bot.views.catalog import translate
from bot.views.turn_view import EvidenceView
from tests.bot.desk.rights_matrix import (
    CHECKED,
    CORPORA,
    FOLLOW_UP,
    FOUND,
    HELD,
    NEAREST,
    STANDINGS,
    WHO,
    find_corpora,
    open_rights_matrix,
    rounds,
)
from tests.platforms.memory_platform import DIALECTS
from tests.thorough import THOROUGH

NOTHING = translate("not_here", "en")
OPEN = dict.fromkeys(CORPORA, ("*", "C1", "C2", "C3", "U1", "U2"))


@pytest.fixture(params=["slack", "discord"] if THOROUGH else ["slack"])
def platform(request):
    """The desk is the same on both: each has a part of the readers where those are many."""
    return request.param


OVER_BOTH = pytest.mark.parametrize("platform", ["slack", "discord"])


@pytest.fixture
async def house(platform, vaults, tmp_path):
    async with open_rights_matrix(Path(shutil.copytree(vaults, tmp_path / "home")), DIALECTS[platform]) as opened:
        yield opened


@OVER_BOTH
async def test_answer_shows_exactly_the_readable_corpora(house, platform):
    for number, readers in enumerate(rounds(platform)):
        foreign = frozenset({"C3", "D-U2"} if number % 2 else ())
        await house.allow(readers, foreign, STANDINGS[number % len(STANDINGS)])
        task = {"task": "check"} if number % 5 == 4 else {}
        text = CHECKED if task else (HELD, NEAREST)[number % 2]
        asked = await house.ask(dict.fromkeys(WHO, text), **task)
        for who, question in asked.items():
            ours = [message for message in house.server.messages.values() if message.key == question.key]
            shown = find_corpora([one.plain for one in ours])
            assert shown <= house.may(*who)
            assert task or shown == house.may(*who)
        house.look()


@OVER_BOTH
async def test_actions_follow_rights_that_changed_since(house, platform):
    await house.allow(OPEN, frozenset())
    asked = await house.ask({who: HELD if who[1] == "U1" else NEAREST for who in WHO})
    house.look()
    given = set()
    for number, readers in enumerate(rounds(platform)):
        foreign = frozenset({"C3", "D-U2"} if number % 2 else ())
        await house.allow(readers, foreign, STANDINGS[number % len(STANDINGS)])
        for (owner, question), who in itertools.product(asked.items(), WHO):
            ticket, told = await house.ticket(question), _could_be_told(owner, who)
            said = await house.act("evidence", ticket, who)
            whole = told and house.may(*who) == set(CORPORA)
            assert isinstance(said, EvidenceView) if whole else said == NOTHING
            given.add(whole)
            if (number + ticket) % 4 == 0:
                pages = await house.act("sources", question.conversation, who)
                assert find_corpora(pages) == (house.may(*who) if told and owner[1] == "U1" else set())
                assert [source.number for source in pages.sources] == list(range(1, len(pages.sources) + 1))
                said = await house.act("feedback", ticket, who, "down", "It is so.")
                answered = told and owner[1] == "U2" and house.standing.get(who[1]) != "denied"
                assert (said != NOTHING) == (whole or answered)
                await house.act("ask_person", ticket, who)
    assert given == {True, False}


@pytest.mark.parametrize("readable", [True, False])
async def test_sharing_needs_all_corpora_readable(house, readable):
    await house.allow(OPEN, frozenset())
    asked = await house.ask(dict.fromkeys(WHO, HELD))
    house.look()
    ticket = await house.ticket(asked["C2", "U2"])
    if not readable:
        await house.narrow("C2", CORPORA[:2])
    before = set(house.server.messages)

    said = [await house.act("share", ticket, who) for who in (*WHO, ("C2", "U2"))]

    shown = [one for key, one in house.server.messages.items() if key not in before]
    assert said.count(translate("share_done", "en")) == len(shown) == readable
    assert find_corpora([one.plain for one in shown]) == (set(CORPORA) if readable else set())
    assert all((one.channel, one.only) == ("C2", "") for one in shown)


@pytest.mark.parametrize(("text", "forgotten"), [(HELD, False), (NEAREST, False), (FOUND, True)])
async def test_recovered_answer_follows_changed_rights(house, text, forgotten):
    await house.allow(OPEN, frozenset())
    asked = await house.ask({("C1", "U1"): text})
    house.look()
    for corpus in CORPORA[1:]:
        await (house.forget(corpus) if forgotten else house.narrow("C1", CORPORA[:1]))

    resumed = await house.resume(asked["C1", "U1"])

    house.look()
    shown = [message.plain for message in house.server.messages.values() if message.key == resumed.key]
    assert find_corpora(shown) == set(CORPORA[:1])


async def test_asker_denied_meanwhile_gets_no_answer(house):
    await house.allow(OPEN, frozenset())
    stands = itertools.chain([Exclusion.NONE], itertools.repeat(Exclusion.DENIED))
    house.platform.refresh = lambda asker: replace(asker, exclusion=next(stands))
    await house.ask({("C1", "U1"): HELD})

    assert not find_corpora([message.plain for message in house.server.messages.values() if message.key])


async def test_shared_answer_is_remembered_for_others(house):
    await house.allow(OPEN, frozenset())
    asked = await house.ask({("C2", "U2"): HELD})
    before = {("C2", "U1"): asked["C2", "U2"]}
    unaware = await house.ask({("C2", "U1"): FOLLOW_UP}, before=before)

    await house.act("share", await house.ticket(asked["C2", "U2"]), ("C2", "U2"))
    aware = await house.ask({("C2", "U1"): FOLLOW_UP}, before=before)

    told = [await house.earlier(one["C2", "U1"]) for one in (unaware, aware)]
    assert [one.count(HELD) for one in told] == [0, 1]
    # The second remembers the first too.
    assert [one.count(CORPORA[0]) for one in told] == [0, 2]


async def test_retraction_removes_the_shared_answer(house):
    await house.allow(OPEN, frozenset())
    asked = await house.ask({("C2", "U2"): HELD})
    ticket = await house.ticket(asked["C2", "U2"])
    await house.act("share", ticket, ("C2", "U2"))
    assert await house.act("evidence", ticket, ("C2", "U1")) != NOTHING

    await house.retract(asked["C2", "U2"])

    assert not [one for one in house.server.ours("C2") if find_corpora(one.plain)]
    assert await house.act("evidence", ticket, ("C2", "U1")) == NOTHING
    assert not find_corpora(await house.act("sources", asked["C2", "U2"].conversation, ("C2", "U2")))


@OVER_BOTH
async def test_narrowed_scope_is_effective_within_a_conversation(house, platform):
    narrowings = [CORPORA, CORPORA[1:], CORPORA[:2], ()]
    for narrowed in narrowings if THOROUGH else narrowings[("slack", "discord").index(platform) :: 2]:
        await house.allow(OPEN, frozenset())
        asked = await house.ask(dict.fromkeys(WHO, HELD))
        again = await house.ask(dict.fromkeys(WHO, FOLLOW_UP), before=asked)
        house.look()
        for channel in ("C1", "C2", "C3"):
            await house.narrow(channel, narrowed)
        last = await house.ask(dict.fromkeys(WHO, FOLLOW_UP), before=asked)
        house.look()
        for who, question in last.items():
            remembered = find_corpora(await house.earlier(question))
            assert remembered <= house.may(*who)
            assert remembered == (set(CORPORA) if house.may(*who) == set(CORPORA) else set())
            for earlier in (asked[who], again[who], question):
                await house.act("evidence", await house.ticket(earlier), who)
                await house.act("sources", earlier.conversation, who)


async def test_forgotten_page_is_shown_nowhere(house):
    await house.allow(OPEN, frozenset())
    everybody = (("C1", "U1"), ("", "U1"))
    asked = await house.ask(dict.fromkeys(everybody, HELD))
    followed = await house.ask(dict.fromkeys(everybody, NEAREST), before=asked)
    assert not isinstance(await house.act("evidence", await house.ticket(followed[everybody[0]]), everybody[0]), str)
    house.look()
    await house.forget(CORPORA[0])

    last = await house.ask(dict.fromkeys(everybody, FOLLOW_UP), before=asked)
    for who in everybody:
        assert not find_corpora(await house.earlier(last[who]))
        for earlier in (asked[who], followed[who]):
            assert await house.act("evidence", await house.ticket(earlier), who) == NOTHING
            await house.act("sources", earlier.conversation, who)
            await house.resume(earlier)
            house.look()
        assert isinstance(await house.act("evidence", await house.ticket(last[who]), who), EvidenceView)


async def test_only_the_contact_person_is_mentioned_with_the_question(house):
    await house.allow(OPEN, frozenset())
    asked = await house.ask(dict.fromkeys(WHO, HELD))
    house.look()
    before = set(house.server.messages)

    for who, question in asked.items():
        await house.act("ask_person", await house.ticket(question), who)

    calls = [one for key, one in house.server.messages.items() if key not in before]
    assert len(calls) == sum(bool(channel) for channel, _ in WHO)
    assert {ping for one in calls for reading in one.read for ping in reading.pings} == {f"<@{house.helper}>"}
    assert not find_corpora([call.parts for call in calls])


@pytest.mark.parametrize("then", ["", "narrowed", "forgotten", "taken back"])
async def test_example_is_used_only_where_its_corpora_are_readable(house, then):
    await house.allow(OPEN, frozenset())
    taught = (await house.ask({("C2", "U1"): HELD}))["C2", "U1"]
    await house.approve(taught)
    house.look()
    match then:
        case "narrowed":
            await house.narrow("C1", CORPORA[:1])
        case "forgotten":
            await house.forget(CORPORA[0])
        case "taken back":
            await house.retract(taught)

    asked = await house.ask({("C1", "U1"): FOUND})
    evidence = await house.act("evidence", await house.ticket(asked["C1", "U1"]), ("C1", "U1"))
    assert find_corpora(evidence) == (frozenset() if then else set(CORPORA))


def _could_be_told(owner: tuple[str, str], who: tuple[str, str]) -> bool:
    if owner[1] == who[1]:
        return True
    return owner[0] == who[0] != "" and owner != ("C2", "U2")
