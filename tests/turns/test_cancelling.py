"""Tests that cancelling a turn in any stage ends its calls at once and is recorded."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from bot.answering.question_answering import answer
from bot.settings.tables.settings_tables import LimitSettings
from evaluation.simulated_model.chat_protocol import HANG, Reply
from pipeline.stages import STAGES
from pipeline.systems import SYSTEMS
from pipeline.types import Event, SentencePassed
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry
from tests.bot.model_app import find_stage, make_request, open_model_app, script_model

CLAIM = "- The pier of Skarholm is made of oak. | none"
POOR = "\n".join(f"{name}: No. 10/100" for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct"))
WRITERS = [name for name, entry in SYSTEMS.items() if entry.calls]


def ignore(event: Event) -> None:
    del event


@pytest.mark.parametrize("system", WRITERS)
async def test_turn_cancelled_in_any_call_is_recorded(tmp_path: Path, system: str) -> None:
    usual, hung = script_model({"split": CLAIM, "claims": CLAIM, "feedback": POOR}), set[str]()
    async with open_model_app(tmp_path, lambda asked: HANG if find_stage(asked) in hung else usual(asked)) as (
        app,
        server,
    ):
        await answer(app, make_request(system=system), ignore)
        called = tuple(dict.fromkeys(map(find_stage, server.requests)))
        assert set(called) <= set(SYSTEMS[system].calls)
        for template in called:
            hung = {template}
            server.requests.clear()
            running = asyncio.create_task(answer(app, make_request(system=system), ignore))
            await server.until(lambda it, template=template: template in map(find_stage, it.requests))
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await server.until(lambda it: it.counts.busy == 0)
            ((opened, _),) = await app.audit.turns(1)
            entries = await app.audit.turn(opened.turn_id)

            steps = [entry.body for entry in entries if "template" in entry.body]
            ended = [step["template"] for step in steps if step.get("error", "").startswith("CancelledError")]
            assert (entries[-1].kind, entries[-1].body["status"]) == (EntryKind.TURN_CLOSED, "cancelled")
            assert entries[-1].body["sentences"] == []
            assert Counter(map(find_stage, server.requests)) <= Counter(step["template"] for step in steps)
            assert template in ended
            assert {step["stage"] for step in steps} <= set(STAGES)
            assert all(step["reply"] for step in steps if step["template"] not in ended)


@pytest.mark.parametrize(
    "system", [name for name in WRITERS if name != "augmenter"]
)  # it says its answer once it is complete
async def test_cancelled_turn_records_spoken_sentences(tmp_path: Path, system: str) -> None:
    sentence = "Skarholm lighthouse was built in 1887 [1]. "
    slow = Reply(sentence + "A keeper lives beside it [1]. " * 200, piece_seconds=0.01)
    shown = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, SentencePassed):
            shown.set()

    async with open_model_app(tmp_path, {"draft": slow}, limits=LimitSettings(refine=False)) as (app, server):
        running = asyncio.create_task(answer(app, make_request(system=system), hear))
        async with asyncio.timeout(60):
            await shown.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await server.until(lambda it: it.counts.busy == 0)
        disconnects = server.counts.left
        ((opened, _),) = await app.audit.turns(10)
        closed = (await app.audit.turn(opened.turn_id))[-1].body

    assert disconnects == 1
    assert closed["status"] == "cancelled"
    assert closed["spoken"][0]["text"] == "Skarholm lighthouse was built in 1887."


async def test_turn_cancelled_twice_is_recorded(tmp_path: Path) -> None:
    async with open_model_app(tmp_path, {"draft": HANG}) as (app, server):
        slow = SlowLog(app.audit)
        running = asyncio.create_task(
            answer(replace(app, audit=cast("AuditLog", slow)), make_request(system="wikichat"), ignore)
        )
        await server.until(lambda it: "draft" in map(find_stage, it.requests))
        slow.closing.clear()
        running.cancel()
        await slow.closing.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        ((_, closed),) = await app.audit.turns(10)

    assert closed is not None
    assert closed.body["status"] == "cancelled"


class SlowLog:
    """A log that needs several rounds of the loop to write."""

    def __init__(self, log: AuditLog) -> None:
        self.log = log
        self.closing = asyncio.Event()

    async def append(self, *added: LogEntry) -> tuple[int, ...]:
        self.closing.set()
        for _ in range(5):
            await asyncio.sleep(0)
        return await self.log.append(*added)
