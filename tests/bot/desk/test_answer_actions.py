"""Tests of the actions on an answer: each is recorded, runs once, and reports its outcome."""

import asyncio
from dataclasses import replace

import pytest

from bot.desk.answer_actions import MAX_COMMENT, remove_shared_answer
from bot.desk.platform_port import CannotPost, ContentRefused, PlatformUnavailable
from bot.settings.tables.settings_tables import Settings
from bot.views.catalog import translate
from bot.views.turn_view import ButtonAction
from bot.views.view_reducer import MAX_QUOTED_QUESTION, shorten_question
from pipeline.types import Status
from storage.database.engine import to_json_value
from storage.errors import HomeUnusable
from storage.record.proof.receipts import RecordPosition
from storage.types import EntryKind, LogEntry
from tests.bot.desk.fake_record import (
    ASKED,
    NOTHING,
    RecordedTurn,
    document,
    in_channel,
    in_dm,
    make_actions,
    read_denial,
    settings,
)

PRIVATE = RecordedTurn(only_asker=True)
FULL = HomeUnusable("The disk is full.")
ADMINISTERED = Settings.model_validate({"slack": {"admins": ["slack:T1/U1"]}}).slack


def act_on(recorded, **people):
    record, platform, actions = make_actions(**people)
    return record, platform, actions, record.add(recorded)


async def test_evidence_shows_every_claim_with_its_verdict_and_passages():
    _, _, actions, ticket = act_on(RecordedTurn(cited=("alpha",), found=("beta",)))

    view = await actions.evidence(ticket, in_channel(user="U2"))

    assert (view.heading, view.question, view.text) == ("Evidence", ASKED, "")
    assert [(item.claim, item.verdict) for item in view.items] == [
        ("alphaclaim", "✅ Confirmed"),
        ("betaclaim", "❌ Contradicted"),
    ]
    assert [(source.number, source.title, source.quote) for item in view.items for source in item.sources] == [
        (1, "alphatitle", "alphatext opens at ten."),
        (0, "betatitle", "betatext opens at ten."),
    ]
    assert [(source.number, source.quote) for source in view.sources] == [(1, "")]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (
            RecordPosition(41, 57, "3f" * 32),
            "entry 41 of the record, signed with 57 entries under the root 3f3f3f3f3f3f3f3f…",
        ),
        (RecordPosition(41), "entry 41 of the record, which is signed next"),
        (None, ""),
    ],
)
async def test_evidence_carries_the_receipt_of_its_answer(position, expected):
    record, _, actions, ticket = act_on(RecordedTurn())
    record.positions = {"turn1": position} if position else {}

    receipt = (await actions.evidence(ticket, in_channel())).receipt

    assert (expected in receipt, "footnote audit receipt turn1" in receipt) == (True, bool(position))


async def test_evidence_without_claims_has_a_text_in_the_askers_language():
    _, _, actions, ticket = act_on(RecordedTurn(cited=(), status=Status.CHATTED, language="de"))

    view = await actions.evidence(ticket, in_channel())

    assert (view.items, view.text) == ((), translate("evidence_none", "de"))


async def test_evidence_omits_deleted_passages():
    record, _, actions, ticket = act_on(RecordedTurn(cited=("alpha",), found=("beta",)))
    record.corpora = ("alpha",)

    assert await read_denial(actions.evidence(ticket, in_channel())) == NOTHING


@pytest.mark.parametrize("act", ["evidence", "feedback", "ask_person", "share"])
async def test_actions_before_the_answer_are_refused_except_asking_a_person(act):
    _, _, actions, ticket = act_on(replace(PRIVATE, closed=False), ask=("slack:T1/U9",))
    more = ("up",) if act == "feedback" else ()
    awaited = getattr(actions, act)(ticket, in_channel(), *more)

    if act == "ask_person":
        assert await awaited == translate("ask_done", "en")
    else:
        assert await read_denial(awaited) == translate("acting_later", "en")


async def test_actions_before_the_first_turn_are_refused():
    record, _, actions, ticket = act_on(RecordedTurn(closed=False))
    record.rows[ticket] = replace(record.rows[ticket], turn_id="", state="waiting", outcome="")

    assert await read_denial(actions.ask_person(ticket, in_channel(), language="de")) == translate("acting_later", "de")


async def test_feedback_is_recorded_with_comment_and_user():
    record, _, actions, ticket = act_on(RecordedTurn())

    reply = [
        await actions.feedback(ticket, in_channel(user="U2"), "up"),
        await actions.feedback(ticket, in_channel(user="U2"), "down", " It opens at nine. "),
        await actions.feedback(ticket, in_channel(user="U3"), "up"),
    ]

    whose = {"by": "slack:T1/U2", "where": "slack:T1/C1"}
    assert reply == [translate("feedback_noted", "en")] * 3
    assert record.acts("up")[0] == {"what": "up", **whose, "comment": ""}
    assert record.acts("down") == [{"what": "down", **whose, "comment": "It opens at nine."}]
    assert record.acts("up")[1]["by"] == "slack:T1/U3"


async def test_repeated_feedback_is_recorded_once():
    record, _, actions, ticket = act_on(RecordedTurn())

    for comment in ("", "", "why", "", "why", "because"):
        await actions.feedback(ticket, in_channel(), "down", comment)

    assert [body["comment"] for body in record.acts("down")] == ["", "why", "because"]


async def test_missed_question_is_recorded_once_as_a_negative_rating_with_its_reason():
    record, _, actions, ticket = act_on(RecordedTurn())

    for opinion in ("down", "missed", "missed", "down"):
        await actions.feedback(ticket, in_channel(), opinion)

    assert [body.get("missed") for body in record.acts("down")] == [None, True, None]


async def test_long_comment_is_cut_with_a_notice():
    record, _, actions, ticket = act_on(RecordedTurn())

    reply = await actions.feedback(ticket, in_channel(), "down", "x" * 5_000)

    assert str(MAX_COMMENT) in reply
    assert record.acts("down")[0]["comment"] == "x" * MAX_COMMENT


async def test_asking_a_person_about_a_private_question_mentions_only_contact_people():
    _, platform, actions, ticket = act_on(PRIVATE, ask=("slack:T1/U1", "slack:T1/U9"))

    await actions.ask_person(ticket, in_channel())

    ((_, text, people),) = platform.called
    assert (text, people) == (translate("ask_call", "en", question=ASKED), ("U1", "U9"))


async def test_contact_people_are_mentioned_once():
    record, platform, actions, ticket = act_on(RecordedTurn(), ask=("slack:T1/U8", "slack:T1/U9"))

    reply = await actions.ask_person(ticket, in_channel(user="U2"))
    again = await read_denial(actions.ask_person(ticket, in_channel()))

    ((place, text, people),) = platform.called
    assert (reply, again) == (translate("ask_done", "en"), translate("ask_already", "en"))
    assert (place.channel, place.thread, people) == ("C1", "1.0", ("U8", "U9"))
    assert ASKED in text
    assert [body["state"] for body in record.acts("ask")] == ["begun", "done"]
    assert record.acts("ask")[0]["people"] == ["slack:T1/U8", "slack:T1/U9"]


async def test_people_removed_by_admin_are_not_mentioned():
    record, platform, actions = make_actions(ask=("slack:T1/U8", "slack:T1/U9"))
    record.narrowed["slack:T1/C1"] = {"ask": ["slack:T1/U9", "slack:T1/U666"]}
    ticket = record.add(RecordedTurn())

    await actions.ask_person(ticket, in_channel())

    assert platform.called[0][2] == ("U9",)


@pytest.mark.parametrize("recorded", [RecordedTurn(), RecordedTurn(asker=in_channel("C2"))])
async def test_ask_a_person_button_without_contact_people_is_refused(recorded):
    _, platform, actions, ticket = act_on(recorded, ask=("slack:T1/U9",) if recorded.asker.channel == "C2" else ())

    assert await read_denial(actions.ask_person(ticket, recorded.asker)) == translate("ask_nobody", "en")
    assert not platform.called


async def test_ask_a_person_button_can_be_retried_after_a_platform_error():
    record, platform, actions = make_actions(ask=("slack:T1/U9",))
    platform.faults = [CannotPost("The channel is archived.")]
    ticket = record.add(RecordedTurn())

    refused = await read_denial(actions.ask_person(ticket, in_channel()))
    await actions.ask_person(ticket, in_channel())

    assert refused == translate("ask_failed", "en")
    assert [body["state"] for body in record.acts("ask")] == ["begun", "failed", "begun", "done"]
    assert len(platform.called) == 1


async def test_long_question_is_shortened_to_one_line():
    assert shorten_question("a\nb " * 1_000) == ("a b " * (MAX_QUOTED_QUESTION // 4)).rstrip() + "…"
    assert shorten_question("When\n\ndoes it open?") == "When does it open?"


async def test_answer_is_shared_once():
    record, platform, actions, ticket = act_on(PRIVATE)
    before = await read_denial(actions.evidence(ticket, in_channel(user="U2")))

    reply = await actions.share(ticket, in_channel(), name=f"Ana\n{'a' * 100}")
    again = await read_denial(actions.share(ticket, in_channel()))

    (view,) = platform.posts.values()
    assert (before, reply, again) == (NOTHING, translate("share_done", "en"), translate("share_already", "en"))
    assert [sentence.text for sentence in view.sentences] == ["alphatext opens at ten."]
    assert view.notice == f"Ana {'a' * 76}… asked “{PRIVATE.question(ticket).text}” and shared the answer."
    assert view.done
    assert {button.action for button in view.buttons} >= {
        ButtonAction.EVIDENCE,
        ButtonAction.UP,
        ButtonAction.DOWN,
        ButtonAction.RETRACT,
    }
    assert {button.ticket for button in view.buttons} == {ticket}
    assert [body["state"] for body in record.acts("share")] == ["begun", "done"]
    assert record.acts("share")[1]["messages"] == list(platform.posts)
    assert (await actions.evidence(ticket, in_channel(user="U2"))).sources


async def test_refused_layout_is_shared_as_plain_text():
    record, platform, actions = make_actions()
    platform.faults = [ContentRefused("Slack refused chat.postMessage: invalid_blocks.")]

    await actions.share(record.add(PRIVATE), in_channel(), name="Ana")

    (view,) = platform.posts.values()
    assert (view.plain, view.sentences, record.acts("share")[-1]["text"]) == (True, (), view.text)
    assert view.text.startswith("Ana asked ")
    assert "alphatext opens at ten." in view.text


async def test_shared_answer_is_public_under_its_own_key():
    record, platform, actions = make_actions()

    await actions.share(record.add(PRIVATE), in_channel())

    (question,) = platform.questions
    assert (question.only_asker, question.handle, question.key) == (False, "", "key-1#shared")
    assert "xoxb" not in repr((record.log, platform))


@pytest.mark.parametrize(
    ("recorded", "by", "words"),
    [
        (PRIVATE, in_channel(user="U2"), NOTHING),
        (PRIVATE, in_dm(), NOTHING),
        (PRIVATE, in_channel("C2"), NOTHING),
        (RecordedTurn(), in_channel(), translate("share_public", "en")),
        (replace(PRIVATE, status=Status.ABSTAINED), in_channel(), translate("share_empty", "en")),
    ],
)
async def test_sharing_is_refused_except_to_the_asker_in_the_channel(recorded, by, words):
    record, platform, actions = make_actions()

    assert await read_denial(actions.share(record.add(recorded), by)) == words
    assert not platform.posts


async def test_answer_from_corpora_the_channel_may_no_longer_read_is_not_shared():
    record, platform, actions, ticket = act_on(PRIVATE)
    record.narrowed["slack:T1/C1"] = {"corpora": ["beta"]}

    assert await read_denial(actions.share(ticket, in_channel())) == NOTHING
    assert not platform.posts


@pytest.mark.parametrize("readable", [["alpha", "beta"], ["alpha"]])
async def test_shared_answer_omits_counts_of_unreadable_claims(readable):
    record, platform, actions, ticket = act_on(RecordedTurn(cited=("alpha",), found=("beta",), only_asker=True))
    record.narrowed["slack:T1/C1"] = {"corpora": readable}

    await actions.share(ticket, in_channel())

    (view,) = platform.posts.values()
    assert view.sentences
    assert bool(view.collapsed) == bool(view.left_out) == ("beta" in readable)


@pytest.mark.parametrize("reads_back", [True, False])
async def test_interrupted_sharing_posts_no_second_copy(reads_back):
    record, platform, actions = make_actions()
    platform.reads_back, platform.late_faults = reads_back, [PlatformUnavailable("It does not answer.")]
    ticket = record.add(PRIVATE)

    cut = await read_denial(actions.share(ticket, in_channel()))
    again = actions.share(ticket, in_channel())

    assert cut == translate("share_failed", "en")
    if reads_back:
        assert await again == translate("share_done", "en")
    else:
        assert await read_denial(again) == translate("share_uncertain", "en")
    assert len(platform.posts) == 1


@pytest.mark.parametrize("fault", [CannotPost("It is archived."), PlatformUnavailable("Too many.", seconds=3)])
async def test_sharing_can_be_retried_after_a_platform_error(fault):
    record, platform, actions = make_actions()
    platform.faults, platform.reads_back = [fault], False
    ticket = record.add(PRIVATE)

    refused = await read_denial(actions.share(ticket, in_channel()))
    await actions.share(ticket, in_channel())

    assert refused == translate("share_failed", "en")
    assert [body["state"] for body in record.acts("share")] == ["begun", "failed", "begun", "done"]


async def test_shared_answer_is_removed_with_its_answer():
    record, platform, actions = make_actions()
    recorded = record.add(PRIVATE), record.add(PRIVATE)
    platform.late_faults = [PlatformUnavailable("It does not answer.")]
    await read_denial(actions.share(recorded[0], in_channel()))
    await actions.share(recorded[1], in_channel())

    for ticket in recorded:
        assert await remove_shared_answer(platform, PRIVATE.question(ticket), await record.turn(f"turn{ticket}"))
    assert not platform.posts
    assert await remove_shared_answer(platform, PRIVATE.question(3), ()) == ()


@pytest.mark.parametrize("act", ["share", "ask_person"])
async def test_simultaneous_presses_of_a_button_act_once(act):
    _, platform, actions, ticket = act_on(PRIVATE, ask=("slack:T1/U9",))

    reply = await asyncio.gather(
        *(getattr(actions, act)(ticket, in_channel()) for _ in range(3)), return_exceptions=True
    )

    assert sum(isinstance(part, str) for part in reply) == 1
    assert len(platform.posts) + len(platform.called) == 1


async def test_sources_list_each_page_once_renumbered():
    record, _, actions = make_actions()
    record.add(RecordedTurn(cited=("beta", "alpha")))
    record.add(RecordedTurn(cited=("alpha", "gamma"), language="de"))
    record.add(RecordedTurn(cited=("alpha",), thread="2.0"))

    view = await actions.sources("slack:T1/C1/1.0", in_channel(user="U2"))

    assert [(source.number, source.title, source.quote) for source in view.sources] == [
        (1, "betatitle", ""),
        (2, "alphatitle", ""),
        (3, "gammatitle", ""),
    ]
    assert (view.heading, view.text) == (translate("sources_heading", "de"), "")


async def test_sources_omit_forgotten_pages():
    record, _, actions = make_actions()
    record.add(RecordedTurn(cited=("beta", "alpha")))
    record.forgot = frozenset({"beta"})

    view = await actions.sources("slack:T1/C1/1.0", in_channel(user="U2"))

    assert [(source.number, source.title) for source in view.sources] == [(1, "alphatitle")]


async def test_sources_omit_private_and_retracted_answers():
    record, _, actions = make_actions()
    record.add(RecordedTurn(cited=("alpha",), only_asker=True))
    ticket = record.add(RecordedTurn(cited=("beta",)))
    record.log.append(LogEntry(f"turn{ticket}", EntryKind.EDITED, {"retracted": True}))

    view = await actions.sources("slack:T1/C1/1.0", in_channel(user="U2"))

    assert view == await actions.sources("slack:T1/C1/9.9", in_channel(user="U2"))
    assert view.text == translate("sources_none", "en")


@pytest.mark.parametrize("act", ["evidence", "feedback", "ask_person", "share", "approve"])
async def test_answer_citing_a_forgotten_page_is_inaccessible(act):
    record, platform, actions = make_actions(ask=("slack:T1/U9",))
    ticket, more = record.add(replace(PRIVATE, cited=("alpha", "beta"))), ("up",) if act == "feedback" else ()
    record.forgot = frozenset({"beta"})
    before = list(record.log)

    assert await read_denial(getattr(actions, act)(ticket, in_channel(), *more)) == NOTHING
    assert (platform.posts, platform.called, record.log) == ({}, [], before)


@pytest.mark.parametrize("way", ["entry", "row"])
async def test_retracted_answer_is_inaccessible(way):
    record, _, actions, ticket = act_on(RecordedTurn())
    if way == "entry":
        record.log.append(LogEntry(f"turn{ticket}", EntryKind.EDITED, to_json_value({"retracted": True})))
    else:
        record.rows[ticket] = replace(record.rows[ticket], outcome="retracted")

    assert await read_denial(actions.evidence(ticket, in_channel())) == NOTHING
    assert await read_denial(actions.feedback(ticket, in_channel(), "up")) == NOTHING


@pytest.mark.parametrize("act", ["feedback", "ask_person", "share", "approve"])
async def test_action_is_refused_if_it_cannot_be_recorded(act, caplog):
    record, platform, actions, ticket = act_on(PRIVATE, ask=("slack:T1/U9",), admins=("slack:T1/U1",))
    record.broken = FULL
    more = ("up",) if act == "feedback" else ()

    words = await read_denial(getattr(actions, act)(ticket, in_channel(), *more))

    assert words == translate("acting_unrecorded", "en")
    assert not platform.posts
    assert not platform.called
    assert "The disk is full." in caplog.records[0].cause


@pytest.mark.parametrize("fault", ["unreadable", "invalid"])
async def test_action_is_refused_if_the_turn_cannot_be_read(fault, caplog):
    record, _, actions, ticket = act_on(RecordedTurn())
    if fault == "unreadable":
        record.unreadable = FULL
    else:
        record.rows[ticket] = replace(record.rows[ticket], body={"text": 1})

    words = await read_denial(actions.evidence(ticket, in_channel(), language="fr"))

    assert words == translate("acting_unavailable", "fr")
    assert ("The disk is full." in caplog.records[0].cause) is (fault == "unreadable")


async def test_action_on_a_disconnected_platform_is_refused():
    record, _, actions = make_actions()
    actions = type(actions)(record, {})
    ticket = record.add(PRIVATE)

    assert await read_denial(actions.share(ticket, in_channel())) == translate("acting_unavailable", "en")


@pytest.mark.parametrize("recorded", [RecordedTurn(), PRIVATE])
async def test_admin_approves_an_example_once(recorded):
    record, _, actions, ticket = act_on(recorded)
    assert not await actions.offers_example(ticket, in_channel())
    assert await read_denial(actions.approve(ticket, in_channel())) == translate("example_admins", "en")
    record.settings = settings().model_copy(update={"slack": ADMINISTERED})

    assert await actions.offers_example(ticket, in_channel())
    assert await actions.approve(ticket, in_channel()) == translate("example_done", "en")
    assert not await actions.offers_example(ticket, in_channel())
    assert await actions.approve(ticket, in_channel(), language="de") == translate("example_known", "de")
    assert record.acts("example") == [
        {"what": "example", "by": "slack:T1/U1", "where": "slack:T1/C1", "state": "added"}
    ]
    (example,) = record.examples.kept
    assert example.body["corpora"] == ("alpha",)
    assert ("alpha", document("alpha").key) in example.body["documents"]


async def test_answer_with_a_refuted_claim_cannot_be_an_example():
    record, _, actions, ticket = act_on(RecordedTurn(found=("beta",)), admins=("slack:T1/U1",))

    assert not await actions.offers_example(ticket, in_channel())
    assert await read_denial(actions.approve(ticket, in_channel())) == translate("example_unfit", "en")
    assert record.examples.kept == []


async def test_admin_of_another_channel_cannot_approve_an_example():
    _, _, actions, ticket = act_on(RecordedTurn(asker=in_channel("C2", "U2")), admins=("slack:T1/U1",))

    assert await read_denial(actions.approve(ticket, in_channel())) == NOTHING
    assert await read_denial(actions.offers_example(ticket, in_channel())) == NOTHING
