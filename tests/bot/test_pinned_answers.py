"""Pinned answers: shown word for word while their passages are unchanged, to askers who may read them."""

from dataclasses import replace
from functools import partial

import pytest

from bot.access import Asker, find_forgotten_documents
from bot.answering.pinned_answers import (
    PinnedAnswer,
    UnfitAnswer,
    UnsupportedText,
    build_pin_entry,
    build_pinned,
    encode_pinned,
    normalize_question,
)
from bot.answering.question_answering import PINNED, answer
from bot.answering.turn_record import read_turn_record
from bot.app import App
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest, TurnResult
from bot.views.catalog import translate
from bot.views.view_reducer import finish_view, start_view
from bot.wiring import open_text_check
from ingest.refresh.corpus_refresh import refresh_corpus
from pipeline.gate import Verify
from pipeline.types import SentencePassed, Status
from storage.record.proof.record_check import verify_record
from storage.record.proof.verification import verify_turn
from storage.types import ApprovedExample, EntryKind, LogEntry
from tests.bot.model_app import open_model_app
from tests.bot.test_answering import PAGES, TERMINAL, abstaining, quoting
from tests.bot.test_example_pool import SCRIPT, turn
from tests.fakes import PageSource
from tests.filled_homes import fill_home
from tests.pipeline.world import registered
from tests.storage.stores import kept, opened

BUILT = "When was Skarholm lighthouse built?"
QUESTION = "When does the vault open?"
BETTER = "It closes at six [1]. The vault opens at ten [1]."
BETTER_TEXTS = ("It closes at six.", "The vault opens at ten.")


@pytest.fixture
async def app(tmp_path):
    await fill_home(tmp_path, {"handbook": PAGES})
    with opened(tmp_path) as store:
        corpus = [{"name": "handbook", "visible_to": ["slack:T1/C1"]}]
        settings = Settings(home=tmp_path, corpus=corpus)
        yield App(settings, store, **kept(store), systems=registered(quoting=quoting, abstaining=abstaining))


async def ask(app: App, text: str = QUESTION, by: Asker = TERMINAL, system: str = "quoting") -> TurnResult:
    return await answer(app, TurnRequest(text, by, system=system), lambda _: None)


async def build(app: App, entries: tuple[LogEntry, ...], text: str, verify: Verify | None = None) -> PinnedAnswer:
    return await build_pinned(
        entries,
        text,
        recall=app.manifest.recall,
        find_forgotten=partial(find_forgotten_documents, app.manifest),
        supports=app.supports,
        verify=verify,
        name="Ana",
        day="2026-03-02",
    )


async def pin(app: App, turn_id: str, text: str = BETTER) -> None:
    pinned = await build(app, await app.audit.turn(turn_id), text)
    kept_answer = ApprovedExample(turn_id, "terminal", encode_pinned(pinned))
    await app.examples.pin_answer(kept_answer, build_pin_entry(pinned, "terminal", "pinned"))


async def ask_and_pin(app: App, text: str = BETTER) -> str:
    done = await ask(app)
    assert done.system == "quoting"
    await pin(app, done.answer_id, text)
    return done.answer_id


def texts(result: TurnResult) -> tuple[str, ...]:
    return tuple(sentence.text for sentence in result.answer.sentences)


async def test_corrected_answer_is_shown_to_the_same_question(app) -> None:
    first = await ask_and_pin(app)

    done = await ask(app, "  when Does the  vault open ")

    assert (texts(done), done.system, done.model) == (BETTER_TEXTS, PINNED, None)
    assert (done.pinned.turn_id, done.pinned.name, done.pinned.day) == (first, "Ana", "2026-03-02")
    assert [citation.quote for citation in done.answer.citations] == ["The vault opens at ten. It closes at six."]
    entries = await app.audit.turn(done.answer_id)
    checked = await verify_record(app.audit.database, ())
    assert (verify_turn(entries), checked.findings, checked.answers) == ((), (), 2)
    assert entries[-1].body["pinned"]["turn_id"] == first
    assert read_turn_record(entries).result.pinned == done.pinned
    assert finish_view(start_view(1, "de"), done).collapsed == translate("pinned", "de", name="Ana", day="2026-03-02")


@pytest.mark.parametrize(("verdict", "system"), [("SUPPORTS", PINNED), ("NOT ENOUGH INFO", "wikichat-fast")])
async def test_model_judges_a_pinned_answer(tmp_path, verdict, system) -> None:
    script = {**SCRIPT, "verify": f"Reasoning: So.\nSentences: 1\nVerdict: {verdict}"}
    async with open_model_app(tmp_path, script) as (app, _):
        events, asked = [], TurnRequest(BUILT, TERMINAL, system="wikichat-fast")
        done = await answer(replace(app, llm=None), replace(asked, system="extractive"), lambda _: None)
        text = "The lighthouse of Skarholm was built in the year 1887 [1]."
        await pin(app, done.answer_id, text)
        again = await answer(app, asked, events.append)

    assert again.system == system
    shown = [event.sentence.text for event in events if isinstance(event, SentencePassed)]
    assert (text.replace(" [1]", "") in shown) is (system == PINNED)


async def test_unpinned_answer_stays_an_example(app) -> None:
    first = await ask_and_pin(app)
    await app.examples.add(ApprovedExample(first, "slack:T1/U1", {"id": first}), build_entry(first))
    assert texts(await ask(app)) == BETTER_TEXTS

    assert await app.examples.drop_answer(first, build_entry(first))
    assert not await app.examples.drop_answer(first, build_entry(first))
    assert (await ask(app)).system == "quoting"
    assert [example.body for example in await app.examples.all()] == [{"id": first}]
    assert await app.examples.drop(first, build_entry(first))
    assert await app.examples.all() == ()


def build_entry(turn_id: str) -> LogEntry:
    return LogEntry(turn_id, EntryKind.FEEDBACK, {"what": "example"})


async def test_pinned_answer_needs_unchanged_passages(app) -> None:
    await ask_and_pin(app)
    changed = {"vault": {"title": "Vault", "": "The vault opens at nine. It closes at six."}}
    await refresh_corpus(PageSource(changed), "handbook", app.passages, progress=lambda _: None)

    assert (await ask(app)).system == "quoting"


async def test_pinned_answer_with_a_forgotten_page_is_not_shown(app) -> None:
    await ask_and_pin(app)
    await app.manifest.forget("handbook", ["vault"])

    assert (await ask(app)).pinned is None


async def test_pinned_answer_needs_all_corpora_readable(app) -> None:
    await ask_and_pin(app)
    inside, outside = (Asker("slack", "channel", "T1", channel, "U1") for channel in ("C1", "C2"))

    assert texts(await ask(app, by=inside, system="abstaining")) == BETTER_TEXTS
    assert (await ask(app, by=outside, system="abstaining")).answer.status is Status.ABSTAINED


@pytest.mark.parametrize(("first", "second", "same"), [
    (QUESTION, " when does the vault  open", True),
    ("Wie hoch ist die Gebühr?", "wie hoch ist die GEBÜHR", False),
    ("What is PTO?", "WHAT IS PTO", False),
    (QUESTION, "When does the vault not open?", False),
    (QUESTION, "Where does the vault open?", False),
    ("What is C?", "What is C++?", False),
    ("Is it below -5 °C?", "Is it below 5 °C?", False),
    ("May we fly US Air?", "May we fly us air?", False),
    ("From Oslo to Bergen?", "From Bergen to Oslo?", False),
])  # fmt: skip
def test_pinned_answer_needs_the_same_question(first, second, same) -> None:
    assert (normalize_question(first) == normalize_question(second)) is same


@pytest.mark.parametrize(("text", "refused"), [
    ("The vault opens at nine [1].", "The vault opens at nine."),
    ("The vault opens at ten.", "The vault opens at ten."),
    ("It closes at six [1]. It is old [1].", "It is old."),
])  # fmt: skip
async def test_unsupported_correction_is_refused_by_sentence(app, text, refused) -> None:
    with pytest.raises(UnsupportedText) as unsupported:
        await ask_and_pin(app, text)

    ((sentence, reason),) = unsupported.value.refused
    assert (sentence, bool(reason)) == (refused, True)
    assert await app.examples.answers() == ()


@pytest.mark.parametrize("verdict", ["SUPPORTS", "REFUTES"])
async def test_model_judges_a_corrected_text(tmp_path, verdict) -> None:
    script = {**SCRIPT, "verify": f"Reasoning: So.\nSentences: 1\nVerdict: {verdict}"}
    async with open_model_app(tmp_path, script) as (app, _):
        done = await answer(app, TurnRequest(BUILT, TERMINAL, system="extractive"), lambda _: None)
        entries = await app.audit.turn(done.answer_id)
        async with open_text_check(app.settings, BUILT) as (_, verify):
            text = "Skarholm lighthouse went up in 1887 [1]."
            building = build(app, entries, text, verify=verify)
            if verdict == "SUPPORTS":
                assert [sentence.text for sentence in (await building).sentences] == [
                    "Skarholm lighthouse went up in 1887."
                ]
            else:
                with pytest.raises(UnsupportedText, match="went up"):
                    await building


@pytest.mark.parametrize(("entries", "reason"), [
    ((), "unknown"),
    (turn()[:1], "unanswered"),
    (turn(status="abstained"), "unanswered"),
    (turn(task="check"), "check"),
    (turn(), "follow_up"),
    ((*turn(), LogEntry("t1", EntryKind.EDITED, {"retracted": True})), "retracted"),
])  # fmt: skip
async def test_only_self_contained_answered_questions_can_be_pinned(app, entries, reason) -> None:
    with pytest.raises(UnfitAnswer) as unfit:
        await build(app, entries, "")
    assert unfit.value.reason == reason
