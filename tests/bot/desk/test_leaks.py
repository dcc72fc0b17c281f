"""Tests that nothing is shown outside its scope.

There are two users of any rights, three channels, DMs, three corpora and every set of readers. Everything that the
platform receives is checked, and every result of an action.
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
    """Return each platform; with many sets of readers each gets a part, as the desk is the same."""
    return request.param


OVER_BOTH = pytest.mark.parametrize("platform", ["slack", "discord"])


@pytest.fixture
async def matrix(platform, vaults, tmp_path):
    async with open_rights_matrix(Path(shutil.copytree(vaults, tmp_path / "home")), DIALECTS[platform]) as opened:
        yield opened


@OVER_BOTH
async def test_answer_shows_exactly_the_readable_corpora(matrix, platform):
    for number, readers in enumerate(rounds(platform)):
        foreign = frozenset({"C3", "D-U2"} if number % 2 else ())
        await matrix.allow(readers, foreign, STANDINGS[number % len(STANDINGS)])
        task = {"task": "check"} if number % 5 == 4 else {}
        text = CHECKED if task else (HELD, NEAREST)[number % 2]
        questions = await matrix.ask(dict.fromkeys(WHO, text), **task)
        for who, question in questions.items():
            ours = [message for message in matrix.server.messages.values() if message.key == question.key]
            shown = find_corpora([post.plain for post in ours])
            assert shown <= matrix.may(*who)
            assert task or shown == matrix.may(*who)
        matrix.look()


@OVER_BOTH
async def test_actions_follow_rights_changed_after_the_answer(matrix, platform):
    await matrix.allow(OPEN, frozenset())
    questions = await matrix.ask({who: HELD if who[1] == "U1" else NEAREST for who in WHO})
    matrix.look()
    given = set()
    for number, readers in enumerate(rounds(platform)):
        foreign = frozenset({"C3", "D-U2"} if number % 2 else ())
        await matrix.allow(readers, foreign, STANDINGS[number % len(STANDINGS)])
        for (owner, question), who in itertools.product(questions.items(), WHO):
            ticket, entries = await matrix.ticket(question), _may_see(owner, who)
            result = await matrix.act("evidence", ticket, who)
            whole = entries and matrix.may(*who) == set(CORPORA)
            assert isinstance(result, EvidenceView) if whole else result == NOTHING
            given.add(whole)
            if (number + ticket) % 4 == 0:
                pages = await matrix.act("sources", question.conversation, who)
                assert find_corpora(pages) == (matrix.may(*who) if entries and owner[1] == "U1" else set())
                assert [source.number for source in pages.sources] == list(range(1, len(pages.sources) + 1))
                result = await matrix.act("feedback", ticket, who, "down", "It is so.")
                answered = entries and owner[1] == "U2" and matrix.standing.get(who[1]) != "denied"
                assert (result != NOTHING) == (whole or answered)
                await matrix.act("ask_person", ticket, who)
    assert given == {True, False}


@pytest.mark.parametrize("readable", [True, False])
async def test_sharing_needs_all_corpora_readable(matrix, readable):
    await matrix.allow(OPEN, frozenset())
    questions = await matrix.ask(dict.fromkeys(WHO, HELD))
    matrix.look()
    ticket = await matrix.ticket(questions["C2", "U2"])
    if not readable:
        await matrix.narrow("C2", CORPORA[:2])
    before = set(matrix.server.messages)

    result = [await matrix.act("share", ticket, who) for who in (*WHO, ("C2", "U2"))]

    shown = [one for key, one in matrix.server.messages.items() if key not in before]
    assert result.count(translate("share_done", "en")) == len(shown) == readable
    assert find_corpora([post.plain for post in shown]) == (set(CORPORA) if readable else set())
    assert all((post.channel, post.only) == ("C2", "") for post in shown)


@pytest.mark.parametrize(("text", "forgotten"), [(HELD, False), (NEAREST, False), (FOUND, True)])
async def test_recovered_answer_follows_changed_rights(matrix, text, forgotten):
    await matrix.allow(OPEN, frozenset())
    questions = await matrix.ask({("C1", "U1"): text})
    matrix.look()
    for corpus in CORPORA[1:]:
        await (matrix.forget(corpus) if forgotten else matrix.narrow("C1", CORPORA[:1]))

    resumed = await matrix.resume(questions["C1", "U1"])

    matrix.look()
    shown = [message.plain for message in matrix.server.messages.values() if message.key == resumed.key]
    assert find_corpora(shown) == set(CORPORA[:1])


async def test_asker_denied_meanwhile_gets_no_answer(matrix):
    await matrix.allow(OPEN, frozenset())
    exclusions = itertools.chain([Exclusion.NONE], itertools.repeat(Exclusion.DENIED))
    matrix.platform.refresh = lambda asker: replace(asker, exclusion=next(exclusions))
    await matrix.ask({("C1", "U1"): HELD})

    assert not find_corpora([message.plain for message in matrix.server.messages.values() if message.key])


async def test_shared_answer_is_remembered_in_questions_of_other_users(matrix):
    await matrix.allow(OPEN, frozenset())
    questions = await matrix.ask({("C2", "U2"): HELD})
    before = {("C2", "U1"): questions["C2", "U2"]}
    unaware = await matrix.ask({("C2", "U1"): FOLLOW_UP}, before=before)

    await matrix.act("share", await matrix.ticket(questions["C2", "U2"]), ("C2", "U2"))
    aware = await matrix.ask({("C2", "U1"): FOLLOW_UP}, before=before)

    entries = [await matrix.earlier(one["C2", "U1"]) for one in (unaware, aware)]
    assert [entry.count(HELD) for entry in entries] == [0, 1]
    # The second question remembers the first.
    assert [entry.count(CORPORA[0]) for entry in entries] == [0, 2]


async def test_retraction_removes_the_shared_answer(matrix):
    await matrix.allow(OPEN, frozenset())
    questions = await matrix.ask({("C2", "U2"): HELD})
    ticket = await matrix.ticket(questions["C2", "U2"])
    await matrix.act("share", ticket, ("C2", "U2"))
    assert await matrix.act("evidence", ticket, ("C2", "U1")) != NOTHING

    await matrix.retract(questions["C2", "U2"])

    assert not [post for post in matrix.server.ours("C2") if find_corpora(post.plain)]
    assert await matrix.act("evidence", ticket, ("C2", "U1")) == NOTHING
    assert not find_corpora(await matrix.act("sources", questions["C2", "U2"].conversation, ("C2", "U2")))


@OVER_BOTH
async def test_narrowed_scope_is_effective_within_a_conversation(matrix, platform):
    narrowings = [CORPORA, CORPORA[1:], CORPORA[:2], ()]
    for narrowed in narrowings if THOROUGH else narrowings[("slack", "discord").index(platform) :: 2]:
        await matrix.allow(OPEN, frozenset())
        questions = await matrix.ask(dict.fromkeys(WHO, HELD))
        again = await matrix.ask(dict.fromkeys(WHO, FOLLOW_UP), before=questions)
        matrix.look()
        for channel in ("C1", "C2", "C3"):
            await matrix.narrow(channel, narrowed)
        last = await matrix.ask(dict.fromkeys(WHO, FOLLOW_UP), before=questions)
        matrix.look()
        for who, question in last.items():
            remembered = find_corpora(await matrix.earlier(question))
            assert remembered <= matrix.may(*who)
            assert remembered == (set(CORPORA) if matrix.may(*who) == set(CORPORA) else set())
            for earlier in (questions[who], again[who], question):
                await matrix.act("evidence", await matrix.ticket(earlier), who)
                await matrix.act("sources", earlier.conversation, who)


async def test_forgotten_page_is_shown_nowhere(matrix):
    await matrix.allow(OPEN, frozenset())
    everybody = (("C1", "U1"), ("", "U1"))
    questions = await matrix.ask(dict.fromkeys(everybody, HELD))
    followed = await matrix.ask(dict.fromkeys(everybody, NEAREST), before=questions)
    assert not isinstance(await matrix.act("evidence", await matrix.ticket(followed[everybody[0]]), everybody[0]), str)
    matrix.look()
    await matrix.forget(CORPORA[0])

    last = await matrix.ask(dict.fromkeys(everybody, FOLLOW_UP), before=questions)
    for who in everybody:
        assert not find_corpora(await matrix.earlier(last[who]))
        for earlier in (questions[who], followed[who]):
            assert await matrix.act("evidence", await matrix.ticket(earlier), who) == NOTHING
            await matrix.act("sources", earlier.conversation, who)
            await matrix.resume(earlier)
            matrix.look()
        assert isinstance(await matrix.act("evidence", await matrix.ticket(last[who]), who), EvidenceView)


async def test_only_the_contact_person_is_mentioned_with_the_question(matrix):
    await matrix.allow(OPEN, frozenset())
    questions = await matrix.ask(dict.fromkeys(WHO, HELD))
    matrix.look()
    before = set(matrix.server.messages)

    for who, question in questions.items():
        await matrix.act("ask_person", await matrix.ticket(question), who)

    calls = [one for key, one in matrix.server.messages.items() if key not in before]
    assert len(calls) == sum(bool(channel) for channel, _ in WHO)
    assert {ping for call in calls for reading in call.read for ping in reading.pings} == {f"<@{matrix.helper}>"}
    assert not find_corpora([call.parts for call in calls])


@pytest.mark.parametrize("then", ["", "narrowed", "forgotten", "taken back"])
async def test_example_is_used_only_where_its_corpora_are_readable(matrix, then):
    await matrix.allow(OPEN, frozenset())
    taught = (await matrix.ask({("C2", "U1"): HELD}))["C2", "U1"]
    await matrix.approve(taught)
    matrix.look()
    match then:
        case "narrowed":
            await matrix.narrow("C1", CORPORA[:1])
        case "forgotten":
            await matrix.forget(CORPORA[0])
        case "taken back":
            await matrix.retract(taught)

    questions = await matrix.ask({("C1", "U1"): FOUND})
    evidence = await matrix.act("evidence", await matrix.ticket(questions["C1", "U1"]), ("C1", "U1"))
    assert find_corpora(evidence) == (frozenset() if then else set(CORPORA))


def _may_see(owner: tuple[str, str], who: tuple[str, str]) -> bool:
    if owner[1] == who[1]:
        return True
    return owner[0] == who[0] != "" and owner != ("C2", "U2")
