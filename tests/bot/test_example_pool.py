"""Answers as worked examples: which qualify, their content, and where they are used."""

from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, date, datetime

import pytest

from bot.access import find_forgotten_documents
from bot.answering.example_pool import UnfitExample, approve_turn, build_demo, load_demos, read_demo
from bot.answering.question_answering import answer
from bot.settings.tables.settings_tables import LimitSettings
from pipeline.prompts.demonstrations import load_own_demos
from pipeline.types import DemoClaim, Demonstration, Status
from storage.types import ApprovedExample, DocumentId, EntryKind, LogEntry, Verdict
from tests.bot.model_app import make_request, open_model_app

SCRIPT = {
    "query": "Search: yes\nQuery: Skarholm lighthouse year built\nTime: none",
    "draft": "Skarholm lighthouse was built in 1887 [1].",
    "verify": "Reasoning: It says so.\nSentences: 1\nVerdict: SUPPORTS",
}
BUILT = ("handbook", "light")


async def _none_gone(_: Collection[DocumentId]) -> frozenset[DocumentId]:
    return frozenset()


class Pool:
    """A pool of approved examples, filled by the test."""

    def __init__(self, *kept: ApprovedExample) -> None:
        self.kept = kept

    async def all(self) -> tuple[ApprovedExample, ...]:
        return self.kept


async def test_approved_answer_is_shown_until_its_page_is_forgotten(tmp_path) -> None:
    async with open_model_app(tmp_path, SCRIPT, limits=LimitSettings(query="always")) as (app, _):
        gone = lambda documents: find_forgotten_documents(app.manifest, documents)  # noqa: E731
        first = await answer(app, make_request(system="in-context"), lambda _: None)
        assert first.answer.status is Status.ANSWERED
        entries = await app.audit.turn(first.answer_id)
        demo = build_demo(entries)
        assert (demo.turns, demo.query) == ((("user", "When was Skarholm lighthouse built?"),), SCRIPT_QUERY)
        assert demo.answer == "Skarholm lighthouse was built in 1887 [1]."
        assert demo.notes[0].text == "Skarholm lighthouse was built in 1887."
        assert DemoClaim("Skarholm lighthouse was built in 1887.", Verdict.SUPPORTS, (1,)) in demo.claims
        assert (demo.corpora, demo.documents) == (("handbook",), (BUILT,))

        assert await approve_turn(entries, app.examples, "terminal", gone)
        assert not await approve_turn(entries, app.examples, "terminal", gone)
        assert [example.by for example in await app.examples.all()] == ["terminal"]
        again = make_request("When was the lighthouse of Skarholm made?", system="in-context")
        second = await answer(app, again, lambda _: None)
        steps = [entry.body for entry in await app.audit.turn(second.answer_id) if entry.body.get("demos")]
        assert all(first.answer_id in step["demos"] for step in steps)
        assert {step["template"] for step in steps} >= {"query", "answer"}
        assert all(step["demo_corpora"] == ["handbook"] for step in steps)
        assert [demo.id for demo in await load_demos(app.examples, ("handbook",), gone)] == [first.answer_id, *OWN]
        assert [demo.id for demo in await load_demos(app.examples, ("wiki",), gone)] == OWN

        await app.manifest.forget("handbook", ["light"])
        assert [demo.id for demo in await load_demos(app.examples, ("handbook",), gone)] == OWN
        with pytest.raises(UnfitExample, match="forgotten"):
            await approve_turn(entries, app.examples, "terminal", gone)


SCRIPT_QUERY = "Skarholm lighthouse year built"
OWN = [own_demo.id for own_demo in load_own_demos()]
SCOPES = {
    "anybody": (("handbook",), (BUILT,)), "one of two": (("board", "handbook"), (BUILT,)),
    "elsewhere": (("board",), ()), "unknown": ((), ()), "forgotten": (("handbook",), (BUILT, ("handbook", "pier"))),
}  # fmt: skip
"""The corpora and documents that an example was made from, by a word in it."""


async def test_unreadable_example_is_in_no_prompt(tmp_path) -> None:
    limits = LimitSettings(examples=16, query="always")
    async with open_model_app(tmp_path, SCRIPT, limits=limits) as (app, server):
        for name, (corpora, documents) in SCOPES.items():
            asked = (("user", f"When was Skarholm lighthouse built, says {name}?"),)
            day, query = date(2026, 1, 5), f"the {name} code"
            demo = Demonstration(name, asked, day, (), "", (), query, corpora=corpora, documents=documents)
            kept = ApprovedExample(name, "slack:T1/U1", asdict(demo), pinned=True)
            await app.examples.add(kept, LogEntry(name, EntryKind.FEEDBACK, {"what": "example"}))
        await app.manifest.forget("handbook", ["pier"])
        done = await answer(app, make_request(system="in-context"), lambda _: None)
        assert done.answer.status is Status.ANSWERED
        sent = " ".join(str(request.body) for request in server.requests)
        assert [name for name in SCOPES if f"says {name}?" in sent or f"the {name} code" in sent] == ["anybody"]


async def test_unreadable_example_version_is_skipped() -> None:
    pool = Pool(ApprovedExample("odd", "slack:T1/U1", {"turns": 7}))
    assert read_demo(pool.kept[0]) is None
    assert [demo.id for demo in await load_demos(pool, ("handbook",), _none_gone)] == OWN


def turn(**closed: object) -> tuple[LogEntry, ...]:
    cited = {"number": 1, "corpus": "handbook", "document": "light", "title": "Light", "section": "", "url": ""}
    cited |= {"revision": "", "date": None, "quote": "It was built in 1887.", "passage_id": "p1"}
    cited |= {"passage_text": "It was built in 1887.", "passage_hash": ""}
    claim = {"claim": {"text": "It was built in 1887.", "origin": "retrieved"}, "verdict": "SUPPORTS"}
    body = {
        "status": "answered",
        "sentences": [{"text": "It was built in 1887.", "citations": [1]}],
        "citations": [cited],
        "claims": [{**claim, "evidence": ["p1"]}],
        **closed,
    }
    at = datetime(2026, 3, 1, tzinfo=UTC)
    opened = {"question": "When?", "earlier": ["Hello.", "Hi."], "earlier_corpora": [], "corpora": {"handbook": None}}
    search = {"stage": "search", "query": "lighthouse when", "time": None, "hits": [["p1", 1, "handbook", "light"]]}
    return (
        LogEntry("t1", EntryKind.TURN_OPENED, {**opened, "task": closed.get("task", "ask")}, at=at),
        LogEntry("t1", EntryKind.STEP, search),
        LogEntry("t1", EntryKind.TURN_CLOSED, body),
    )


def test_example_without_a_model_has_its_search() -> None:
    demo = build_demo(turn())
    assert demo.turns == (("user", "Hello."), ("bot", "Hi."), ("user", "When?"))
    assert (demo.query, demo.time, demo.day) == ("lighthouse when", "none", date(2026, 3, 1))
    assert demo.answer == "It was built in 1887 [1]."


DENIED = {"claim": {"text": "It was lost.", "origin": "model"}, "verdict": "REFUTES", "evidence": []}


@pytest.mark.parametrize(("entries", "reason"), [
    ((), "unknown"),
    (turn()[:1], "unanswered"),
    (turn(status="abstained"), "unanswered"),
    (turn(task="check"), "check"),
    (turn(claims=[]), "unconfirmed"),
    (turn(claims=[DENIED]), "unconfirmed"),
    (turn(withheld=[{"text": "It was lost.", "reason": "no"}]), "unconfirmed"),
    ((*turn(), LogEntry("t1", EntryKind.EDITED, {"retracted": True})), "retracted"),
])  # fmt: skip
def test_only_confirmed_answers_become_examples(entries, reason) -> None:
    with pytest.raises(UnfitExample) as unfit:
        build_demo(entries)
    assert unfit.value.reason == reason
