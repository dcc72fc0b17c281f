"""Tests of every registered system that calls a model: on model failures, and with unreadable pages."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.answering.question_answering import answer
from evaluation.simulated_model.chat_protocol import Reply, answer_error
from ingest.refresh.corpus_refresh import refresh_corpus
from pipeline.systems import SYSTEMS
from pipeline.types import Event, SentencePassed, Status
from storage.record.proof.verification import verify_turn
from storage.types import EntryKind
from tests.bot.model_app import CutReply, make_request, open_model_app
from tests.fakes import PageSource
from tests.pipeline.weak_model import BARE_DATES, ECHOED_REPAIR, GERMAN, LOOPS

FAULTS: dict[str, Any] = {
    "refused": lambda _: answer_error(401, "No."),
    "down": lambda _: answer_error(503, "Busy."),
    "unreadable": lambda _: Reply("what?", finish="stop"),
    "empty": lambda _: Reply(" "),
}
BEGUN = "Skarholm lighthouse was built in 1887 [1]. A keeper lives beside it, " + "year after year, " * 9
SECRET = {"light": {"title": "Skarholm lighthouse", "": "The spy Vexler built Skarholm lighthouse in 1887."}}


def ignore(_: Event) -> None:
    """Ignore events."""


@pytest.fixture(params=[name for name, entry in SYSTEMS.items() if entry.calls])
def system(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("fault", FAULTS)
async def test_quotation_is_left_if_the_model_fails(tmp_path: Path, system: str, fault: str) -> None:
    async with open_model_app(tmp_path, FAULTS[fault]) as (app, _):
        done = await answer(app, make_request(system=system), ignore)
        unknown = await answer(app, make_request("Who painted the Mona Lisa?", system=system), ignore)
        entries = await app.audit.turn(done.answer_id)

    assert [sentence.text for sentence in done.answer.sentences] == ["Skarholm lighthouse was built in 1887."]
    kind = "model_unavailable" if fault in {"refused", "down", "empty"} else "unreadable_reply"
    assert (done.failure, done.quoted_because and done.quoted_because.kind) == (None, kind)
    assert entries[-1].body["quoted_because"]["kind"] == kind
    assert (unknown.answer.status, unknown.answer.sentences, unknown.failure) == (Status.ABSTAINED, (), None)
    assert verify_turn(entries) == ()


@pytest.mark.parametrize("reply", [*LOOPS.values(), ECHOED_REPAIR, GERMAN, BARE_DATES])
async def test_nonsense_of_a_real_model_leaves_the_quotation(tmp_path: Path, system: str, reply: str) -> None:
    events = list[Event]()
    async with open_model_app(tmp_path, lambda _: Reply(reply)) as (app, _):
        done = await answer(app, make_request(system=system), events.append)

    assert [sentence.text for sentence in done.answer.sentences] == ["Skarholm lighthouse was built in 1887."]
    assert (done.failure, done.answer.status) == (None, Status.ANSWERED)
    assert [event.sentence.text for event in events if isinstance(event, SentencePassed)] == [
        "Skarholm lighthouse was built in 1887."
    ]


async def test_interrupted_draft_keeps_checked_sentences(tmp_path: Path, system: str) -> None:
    events = list[Event]()
    async with open_model_app(tmp_path, {"draft": CutReply(BEGUN)}) as (app, _):
        done = await answer(app, make_request(system=system), events.append)
        entries = await app.audit.turn(done.answer_id)

    reply = {event.sentence.text for event in events if isinstance(event, SentencePassed)}
    assert reply <= {"Skarholm lighthouse was built in 1887.", "A keeper lives beside it."}
    assert done.answer.status is not Status.ABSTAINED
    assert {sentence["text"] for sentence in entries[-1].body.get("spoken") or entries[-1].body["sentences"]} == reply
    assert verify_turn(entries) == ()


async def test_unreadable_page_is_in_no_prompt_or_record(tmp_path: Path, system: str) -> None:
    async with open_model_app(tmp_path) as (app, server):
        await refresh_corpus(PageSource(SECRET), "secret", app.passages, progress=lambda _: None)
        done = await answer(app, make_request("Who built it?", system=system, corpora=("handbook",)), ignore)
        entries = await app.audit.turn(done.answer_id)
        sent = json.dumps([request.body for request in server.requests])
        other = await answer(app, make_request("Who built it?", system=system, corpora=("secret",)), ignore)

    kept = json.dumps([entry.body for entry in entries], default=str)
    assert "Vexler" not in sent + kept + done.text
    assert entries[0].kind is EntryKind.TURN_OPENED
    assert "Vexler" in other.text
