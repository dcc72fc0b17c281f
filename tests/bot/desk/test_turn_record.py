"""Tests that a turn is read back from the record as it was answered."""

from dataclasses import replace

import pytest

from bot.access import Asker, find_forgotten_documents
from bot.answering.question_answering import answer, check, close_interrupted
from bot.answering.turn_record import read_turn_record
from bot.app import App
from bot.settings.tables.settings_tables import Settings
from bot.types import Place, TurnRequest
from pipeline.systems import extractive
from pipeline.types import CitedSentence, ClaimChecked, Status, Turn
from storage.types import CheckedClaim, Claim, EntryKind, Evidence, LogEntry, SearchQuery, Verdict
from tests.filled_homes import fill_home
from tests.pipeline.world import registered
from tests.storage.stores import kept, opened

CHANNEL = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)
PAGES = {"vault": {"title": "Vault", "": "The vault opens at ten. It closes at six."}}
TEA = {"tea": {"title": "Tea", "Hours": "Tea is at four. The vault is shut then."}}


async def thorough(talk, kit):
    hits = await kit.search(SearchQuery(talk.question.text), 4)
    claim = Claim("The vault opens at ten.", "model")
    kit.tell(ClaimChecked(CheckedClaim(claim, Verdict.REFUTES, (hits[0].passage.id,), "because")))
    for hit in hits[:1]:
        text = hit.passage.text.split(". ")[0] + "."
        evidence = Evidence(text, hit.passage, hit.document, (0, len(text)))
        await kit.say(CitedSentence("The vault is full of gold.", (evidence,)))
        await kit.say(CitedSentence(text, (evidence,), paragraph=True))
    return Status.ANSWERED


async def abstaining(talk, kit):
    await kit.search(SearchQuery(talk.question.text), 4)
    return Status.ABSTAINED


@pytest.fixture
async def app(tmp_path):
    await fill_home(tmp_path, {"handbook": PAGES, "kitchen": TEA})
    with opened(tmp_path) as store:
        corpus = [{"name": name, "readers": ["*"]} for name in ("handbook", "kitchen")]
        systems = registered(thorough=thorough, abstaining=abstaining, extractive=extractive.answer)
        settings = Settings(home=tmp_path, corpus=corpus)
        yield App(settings, store, systems=systems, **kept(store))


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("When does the vault open?", "thorough"),
        ("When does the vault open?", "abstaining"),
        ("When does the vault open?", "extractive"),
        ("hello", "extractive"),
        ("x" * 100_000, "extractive"),
        ("😀🎉", "extractive"),
    ],
)
async def test_answer_is_read_back_completely(app, text, system):
    done = await answer(app, TurnRequest(text, CHANNEL, system=system), lambda _: None)

    recorded = read_turn_record(await app.audit.turn(done.answer_id))

    assert recorded.result == done
    assert (recorded.turn_id, recorded.task, recorded.question) == (done.answer_id, "ask", text)


async def test_check_is_read_back(app):
    done = await check(app, TurnRequest("The vault opens at ten.", CHANNEL, system="extractive"), lambda _: None)

    recorded = read_turn_record(await app.audit.turn(done.answer_id))

    assert (recorded.task, recorded.result) == ("check", done)
    assert recorded.result.answer.claims


async def test_place_and_asker_are_read_back(app):
    asked = TurnRequest(
        "Wann öffnet der Tresor?", CHANNEL, "17.1", system="thorough", message="17.2", ticket=3, because="b"
    )
    done = await answer(app, asked, lambda _: None)

    recorded = read_turn_record(await app.audit.turn(done.answer_id))

    assert recorded.asker == CHANNEL
    assert recorded.place == Place("slack", "T1", "C1", "17.1")
    assert (recorded.message, recorded.ticket, recorded.because, recorded.language) == ("17.2", 3, "b", "de")
    assert recorded.at is not None


async def test_touched_corpora_are_those_of_cited_and_found_passages_and_earlier_turns(app):
    earlier = (Turn("user", "Any news?"), Turn("bot", "The plan is off.", corpora=("board",)))
    done = await answer(app, TurnRequest("When does the vault open?", CHANNEL, system="thorough"), lambda _: None)
    later = await answer(
        app, TurnRequest("When does it open?", CHANNEL, system="thorough", earlier=earlier), lambda _: None
    )

    first, second = [read_turn_record(await app.audit.turn(result.answer_id)) for result in (done, later)]

    assert first.cited == {"handbook"}
    assert first.touched == {"handbook", "kitchen"}
    assert second.touched == {"handbook", "kitchen", "board"}


async def test_turn_with_forgotten_documents_is_not_remembered(app):
    done = await answer(app, TurnRequest("When does the vault open?", CHANNEL, system="thorough"), lambda _: None)
    first = read_turn_record(await app.audit.turn(done.answer_id))
    bot = Turn("bot", done.text, documents=tuple(first.documents))
    others = (Turn("user", "Any news?"), Turn("user", "Vault?"), Turn("bot", "Shut.", documents=(("kitchen", "tea"),)))
    request = TurnRequest(
        "And when?", CHANNEL, system="thorough", earlier=(others[0], Turn("user", "When?"), bot, *others[1:])
    )
    recorded = []
    for forgotten in ((), (("handbook", "vault"),), (("kitchen", "tea"),)):
        for corpus, key in forgotten:
            await app.manifest.forget(corpus, [key])
        later = await answer(app, request, lambda _: None)
        recorded.append(await app.audit.turn(later.answer_id))

    assert first.documents == {("handbook", "vault")}
    assert [entries[0].body["earlier"] for entries in recorded] == [
        ["Any news?", "When?", done.text, "Vault?", "Shut."],
        ["Any news?", "Vault?", "Shut."],
        ["Any news?"],
    ]
    assert read_turn_record(recorded[1]).documents >= {("kitchen", "tea")}


async def test_old_turn_without_documents_counts_as_forgotten(app):
    unnamed, named = ("handbook", ""), ("kitchen", "tea")
    assert await find_forgotten_documents(app.manifest, (unnamed, named)) == frozenset()
    await app.manifest.forget("handbook", ["vault"])
    assert await find_forgotten_documents(app.manifest, (unnamed, named)) == {unnamed}


async def test_turn_recorded_without_hit_corpora_counts_as_touching_all_readable_ones(app):
    done = await answer(app, TurnRequest("When does the vault open?", CHANNEL, system="abstaining"), lambda _: None)
    first, step, closed = await app.audit.turn(done.answer_id)
    named = {name: closed.body["nearest"][0][name] for name in ("passage_id", "title", "url")}
    older = (
        replace(first, body={name: first.body[name] for name in ("question", "corpora", "thread")}),
        replace(step, body=step.body | {"hits": [hit[:2] for hit in step.body["hits"]]}),
        replace(closed, body=closed.body | {"nearest": [named], "failure": None}),
    )

    recorded = read_turn_record(older)
    checked = await answer(app, TurnRequest("When does the vault open?", CHANNEL, system="thorough"), lambda _: None)
    opened, *steps, closed = await app.audit.turn(checked.answer_id)
    opened = replace(opened, body={**opened.body, "earlier_corpora": ["board"], "earlier_documents": None})
    del opened.body["earlier_documents"]
    steps = [replace(step, body=step.body | {"hits": [hit[:3] for hit in step.body.get("hits", ())]}) for step in steps]
    assert read_turn_record([opened, *steps, closed]).weighed == {("board", ""), ("handbook", "")}

    assert recorded.touched == {"handbook", "kitchen"}
    assert [hit.document.title for hit in recorded.result.answer.nearest] == [named["title"]]
    assert [hit.passage.corpus for hit in recorded.result.answer.nearest] == [""]
    assert recorded.asker == Asker("slack", "dm")


async def test_delivered_messages_are_read_back_until_retraction(app):
    done = await answer(app, TurnRequest("When does the vault open?", CHANNEL, system="thorough"), lambda _: None)
    await app.audit.append(LogEntry(done.answer_id, EntryKind.DELIVERED, {"messages": ["1.1", "1.2"]}))
    posted = read_turn_record(await app.audit.turn(done.answer_id))
    await app.audit.append(LogEntry(done.answer_id, EntryKind.EDITED, {"removed": ["1.1", "1.2"], "retracted": True}))
    gone = read_turn_record(await app.audit.turn(done.answer_id))

    assert (posted.delivered, posted.retracted) == (("1.1", "1.2"), False)
    assert (gone.delivered, gone.retracted) == ((), True)


async def test_interrupted_turn_has_a_failure_once_closed(app):
    await app.audit.append(LogEntry("cut", EntryKind.TURN_OPENED, {"question": "?", "asker": CHANNEL}))
    before = read_turn_record(await app.audit.turn("cut"))
    await close_interrupted(app, "cut")
    after = read_turn_record(await app.audit.turn("cut"))

    assert before.result is None
    assert (after.result.answer.status, after.result.failure.kind) == (Status.FAILED, "interrupted")


def test_steps_without_an_opening_entry_are_not_read_as_a_turn():
    assert read_turn_record(()) is None
    assert read_turn_record((LogEntry("t", EntryKind.STEP, {"hits": []}),)) is None


def test_lone_surrogates_are_replaced():
    claim = {"claim": {"text": "The \ud83d vault", "origin": "user"}, "verdict": "SUPPORTS", "evidence": ["p"]}
    broken = LogEntry("t", EntryKind.TURN_OPENED, {"question": "The \ud83d vault 😀"})

    recorded = read_turn_record(
        (broken, LogEntry("t", EntryKind.TURN_CLOSED, {"status": "abstained", "claims": [claim]}))
    )

    assert recorded.question == "The \ufffd vault 😀"
    assert recorded.result.answer.claims[0].claim.text == "The \ufffd vault"
