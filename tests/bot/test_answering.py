"""Every turn is recorded, whatever happens to it, and no unrecorded answer is returned."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.access import Asker
from bot.answering.question_answering import answer, close_abandoned, close_interrupted
from bot.answering.turn_record import read_turn_record
from bot.app import App
from bot.cli.questions.chat_session import extend_history
from bot.settings.tables.settings_tables import LimitSettings, Settings
from bot.types import TurnRequest
from ingest.refresh.corpus_refresh import refresh_corpus
from pipeline.errors import UnknownSystem
from pipeline.systems import extractive
from pipeline.types import CitedSentence, Status, Turn
from storage.errors import HomeUnusable, Panic, StorageError, UnknownCorpus
from storage.record.audit_log import AuditLog
from storage.record.proof.verification import verify_turn
from storage.types import EntryKind, Evidence, LogEntry, SearchQuery
from tests.fakes import PageSource
from tests.filled_homes import fill_home
from tests.pipeline.world import registered
from tests.storage.stores import kept, opened

TERMINAL = Asker(platform="terminal", kind="terminal")
PAGES = {"vault": {"title": "Vault", "": "The vault opens at ten. It closes at six."}}


async def quoting(talk, kit):
    (hit, *_) = await kit.search(SearchQuery(talk.question.text), 1)
    text = hit.passage.text.split(". ")[0] + "."
    said = await kit.say(CitedSentence(text, (Evidence(text, hit.passage, hit.document, (0, len(text))),)))
    return Status.ANSWERED if said else Status.ABSTAINED


async def abstaining(talk, kit):
    await kit.search(SearchQuery(talk.question.text), 1)
    return Status.ABSTAINED


async def dawdling(_talk, kit):
    await quoting(_talk, kit)
    await asyncio.Event().wait()
    return Status.ANSWERED


async def breaking(_talk, _kit):
    raise LookupError("a bug, and " + "a whole document " * 100)


async def panicking(_talk, _kit):
    raise BaseException("Num bits must be <= 32.")  # noqa: TRY002 - what no `except Exception` catches


FAKES = {"quoting": quoting, "abstaining": abstaining, "dawdling": dawdling, "breaking": breaking}
SYSTEMS = registered(extractive=extractive.answer, panicking=panicking, **FAKES)


@pytest.fixture
async def app(tmp_path):
    await fill_home(tmp_path, {"handbook": PAGES})
    with opened(tmp_path) as store:
        settings = Settings(home=tmp_path)
        yield App(settings, store, **kept(store), systems=SYSTEMS)


def asking(text="When does the vault open?", system="quoting", **more):
    return TurnRequest(text, TERMINAL, system=system, **more)


async def record(app):
    """Return the kinds of the entries of the only turn, and the last entry's body."""
    ((opening, _),) = await app.audit.turns(10)
    entries = await app.audit.turn(opening.turn_id)
    return [entry.kind for entry in entries], entries[-1].body


async def test_introduction_is_recorded_with_its_pages(app):
    await refresh_corpus(
        PageSource({"rota": {"title": "Rota", "": "Two watch."}}), "crew", app.passages, progress=lambda _: None
    )
    asked = TurnRequest("What do you know?", TERMINAL, corpora=("crew", "handbook"))
    done = await answer(replace(app, systems=registered(extractive=extractive.answer)), asked, lambda _: None)
    record = read_turn_record(await app.audit.turn(done.answer_id))

    assert done.answer.status is Status.CHATTED
    assert "• crew (documents: 1" in done.text
    assert record.corpora == {"crew", "handbook"}
    assert not record.may_show_evidence({"handbook"})
    alone = await answer(app, replace(asked, corpora=("handbook",)), lambda _: None)
    assert "crew" not in alone.text


async def test_answer_is_recorded_with_its_evidence(app):
    done = await answer(app, asking(), lambda _: None)

    kinds, closed = await record(app)
    assert done.text == "The vault opens at ten. [1]"
    assert kinds == [EntryKind.TURN_OPENED, EntryKind.STEP, EntryKind.TURN_CLOSED]
    assert (closed["status"], closed["text"]) == ("answered", done.text)
    assert closed["citations"][0]["passage_text"] == PAGES["vault"][""]
    assert verify_turn(await app.audit.turn(done.answer_id)) == ()


@pytest.mark.parametrize(("effort", "count"), [("quick", 0), ("normal", 1), ("thorough", 1)])
async def test_quick_effort_does_not_rerank(app, effort, count):
    reranked = list[str]()

    async def reranking(talk, kit):
        await kit.rerank(talk.question.text, ["The vault opens at ten."])
        return Status.ABSTAINED

    async def rerank(_question, texts):
        reranked.extend(texts)
        return [0.0] * len(texts)

    changed = replace(app, systems=registered(reranking=reranking), rerank=rerank)
    await answer(changed, asking(system="reranking", effort=effort), lambda _: None)

    assert len(reranked) == count


async def test_unrecordable_question_runs_no_system(app):
    class FullLog(AuditLog):
        async def append(self, *_):
            raise HomeUnusable("The disk is full.")

    asked = []

    async def watched(talk, kit):
        asked.append(talk)
        return await quoting(talk, kit)

    broken = replace(app, audit=FullLog(app.manifest.database), systems=registered(watched=watched))

    with pytest.raises(HomeUnusable, match="full"):
        await answer(broken, asking(system="watched"), lambda _: None)

    assert asked == []


async def test_abstention_is_in_the_askers_language_with_nearest_pages(app):
    done = await answer(
        app, asking("Wann öffnet der Tresorraum, und wer hat die Schlüssel?", "abstaining"), lambda _: None
    )

    assert done.answer.status is Status.ABSTAINED
    assert "nichts gefunden" in done.text
    assert [hit.document.title for hit in done.answer.nearest] == ["Vault"]


async def test_failed_search_is_reported_as_outage(app):
    class Broken:
        embedder, compare, threads = app.passages.embedder, app.passages.compare, app.passages.threads

        async def search(self, *_):
            raise StorageError("The index is gone.", hint="Run `footnote reindex`.")

    done = await answer(replace(app, passages=Broken()), asking(system="abstaining"), lambda _: None)

    kinds, closed = await record(app)
    assert (done.answer.status, done.failure.kind) == (Status.FAILED, "search_unavailable")
    assert done.failure.hint == "Run `footnote reindex`."
    assert kinds == [EntryKind.TURN_OPENED, EntryKind.STEP, EntryKind.TURN_CLOSED]
    assert closed["status"] == "failed"


async def test_slow_turn_ends_without_a_partial_answer(app):
    quick = replace(app, settings_source=app.settings.model_copy(update={"limits": LimitSettings(seconds=0.5)}))

    done = await answer(quick, asking(system="dawdling"), lambda _: None)

    assert (done.answer.status, done.failure.kind, done.answer.sentences) == (Status.FAILED, "too_slow", ())


async def test_cancelled_turn_is_recorded(app):
    said = asyncio.Event()
    running = asyncio.create_task(answer(app, asking(system="dawdling"), lambda _: said.set()))
    await said.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running

    kinds, closed = await record(app)
    assert (kinds[-1], closed["status"]) == (EntryKind.TURN_CLOSED, "cancelled")


@pytest.mark.parametrize(("system", "fault"), [("breaking", LookupError), ("panicking", Panic)])
async def test_unexpected_error_is_recorded_in_one_line_and_raised(app, system, fault):
    with pytest.raises(fault):
        await answer(app, asking(system=system), lambda _: None)

    _, closed = await record(app)
    assert (closed["status"], closed["failure"]["kind"]) == ("failed", "internal")
    assert len(closed["failure"]["message"]) <= 200


@pytest.mark.parametrize(
    ("asked", "status"),
    [("hello", Status.CHATTED), ("danke!", Status.CHATTED), ("x" * 100_000, Status.REFUSED), ("😀🎉", Status.REFUSED)],
)
async def test_questions_without_search_are_recorded(app, asked, status):
    done = await answer(app, asking(asked, "extractive"), lambda _: None)

    kinds, closed = await record(app)
    assert done.answer.status is status
    assert bool(done.failure) == (status is Status.REFUSED)
    assert kinds == [EntryKind.TURN_OPENED, EntryKind.TURN_CLOSED]
    assert closed["status"] == status


async def test_unknown_corpus_or_system_is_refused_without_a_record(app):
    stranger = replace(asking(), asker=Asker(platform="slack", kind="channel", workspace="T1", channel="C1"))

    with pytest.raises(UnknownCorpus, match="to read here"):
        await answer(app, asking(corpora=("nowhere",)), lambda _: None)
    with pytest.raises(UnknownCorpus, match="to read here"):
        await answer(app, replace(stranger, corpora=("handbook",)), lambda _: None)
    with pytest.raises(UnknownSystem, match="oracle"):
        await answer(app, asking(system="oracle"), lambda _: None)

    assert await app.audit.turns(10) == ()


async def test_asker_without_corpora_gets_no_title(app):
    stranger = replace(
        asking(system="extractive"), asker=Asker(platform="slack", kind="channel", workspace="T1", channel="C1")
    )

    done = await answer(app, stranger, lambda _: None)

    assert done.answer.status is Status.ABSTAINED
    assert done.answer.nearest == ()


async def test_unreadable_corpora_of_a_channel_are_ignored(app):
    done = await answer(app, asking(within=("handbook", "secret")), lambda _: None)
    narrowed = await answer(app, asking(within=("secret",), system="extractive"), lambda _: None)
    closed = await answer(app, asking(within=(), system="extractive"), lambda _: None)

    assert done.answer.status is Status.ANSWERED
    assert [result.answer.status for result in (narrowed, closed)] == [Status.ABSTAINED] * 2
    assert narrowed.answer.nearest == ()
    opened = [(await app.audit.turn(result.answer_id))[0].body for result in (done, narrowed, closed)]
    assert [list(body["corpora"]) for body in opened] == [["handbook"], [], []]


async def test_corpus_outside_the_channel_is_refused_like_an_unknown_one(app):
    with pytest.raises(UnknownCorpus, match="to read here") as raised:
        await answer(app, asking(within=(), corpora=("handbook",)), lambda _: None)

    assert "handbook" not in raised.value.hint


async def test_record_has_the_origin_of_a_question(app):
    asked = asking(id="abc123abc123", message="17.5", ticket=7, because="tokens_per_day", thread="17.1")

    done = await answer(app, asked, lambda _: None)

    opened, step, _ = await app.audit.turn("abc123abc123")
    assert done.answer_id == "abc123abc123"
    origin = {"message": "17.5", "ticket": 7, "because": "tokens_per_day", "thread": "17.1"}
    assert origin.items() <= opened.body.items()
    assert opened.body["asker"]["platform"] == "terminal"
    assert [hit[2] for hit in step.body["hits"]] == ["handbook"]


async def test_interrupted_turn_is_closed_once(app):
    await app.audit.append(LogEntry("cut", EntryKind.TURN_OPENED, {"question": "?", "language": "de"}))
    done = await answer(app, asking(), lambda _: None)

    closed = [await close_interrupted(app, turn) for turn in ("cut", "cut", done.answer_id, "never")]

    assert closed == [True, False, False, False]
    _, end = await app.audit.turn("cut")
    assert (end.kind, end.body["status"], end.body["failure"]["kind"]) == ("turn_closed", "failed", "interrupted")
    assert end.body["text"].startswith("Ich konnte")


@pytest.mark.parametrize(("database", "closed"), [("", {"old", "new"}), ("postgresql://one/db", {"old"})])
async def test_abandoned_turns_are_closed_as_interrupted(app, database, closed):
    now, turns = datetime(2026, 3, 1, tzinfo=UTC), {"old": 3, "new": 1}
    for turn, hours in turns.items():
        opened = LogEntry(turn, EntryKind.TURN_OPENED, {"question": "?", "ticket": 7}, at=now - timedelta(hours=hours))
        await app.audit.append(opened)
    done = await answer(app, asking(), lambda _: None)
    shared = replace(app, settings_source=app.settings.model_copy(update={"database": database}))
    for _ in range(2):
        await close_abandoned(shared, now)

    ends = {turn: [entry.body["failure"]["kind"] for entry in (await app.audit.turn(turn))[1:]] for turn in turns}
    assert ends == {turn: ["interrupted"] * (turn in closed) for turn in turns}
    assert (await app.audit.turn(done.answer_id))[-1].body["status"] == "answered"


async def test_next_turn_remembers_the_query(app):
    done = await answer(app, asking(), lambda _: None)

    assert extend_history((), "When does it open?", done)[-1].query == SearchQuery("When does the vault open?")


async def test_turns_with_forgotten_documents_are_dropped(app):
    gate = Turn("bot", "The gate opens at nine. [1]", documents=(("handbook", "gate"),))
    after = Turn("bot", "So it does.", documents=(("handbook", "gate"), ("handbook", "vault")))
    said = (Turn("user", "The gate?"), gate, Turn("user", "Really?"), after, Turn("user", "Thanks."))
    await app.manifest.forget("handbook", ["gate"])
    done = await answer(app, asking(earlier=said), lambda _: None)
    again = await answer(app, asking(earlier=extend_history(said, "When does the vault open?", done)), lambda _: None)

    remembered = [(await app.audit.turn(result.answer_id))[0].body["earlier"] for result in (done, again)]
    assert remembered == [["Thanks."], ["Thanks.", "When does the vault open?", done.text]]
