"""Tests that a token has a channel's call limit and a person's budget, and that the home is open during a call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.app import App
from bot.server.mcp.call_limits import MAX_CALLS, CallLimits, TooManyCalls
from bot.server.mcp.shared_home import SharedHome
from bot.server.mcp.tool_calls import make_owner_asker, make_token_asker
from bot.server.service import LocalService
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest
from pipeline.types import Status
from storage.record.record_search import RecordFilter, RecordSearch
from tests.storage.stores import kept, opened

ANNA, BOB = make_token_asker("anna", ()), make_token_asker("bob", ())


async def test_call_waits_only_for_calls_of_the_same_token() -> None:
    app = SimpleNamespace(settings=Settings.model_validate({"desk": {"per_channel": 2}}))
    limits, done, most, under_way = CallLimits(LocalService(app)), asyncio.Event(), 0, 0  # type: ignore[arg-type]

    async def call() -> None:
        nonlocal most, under_way
        async with limits.lend(ANNA):
            under_way += 1
            most = max(most, under_way)
            await done.wait()
            under_way -= 1

    async with asyncio.TaskGroup() as group:
        for _ in range(MAX_CALLS):
            group.create_task(call())
        await asyncio.sleep(0)
        with pytest.raises(TooManyCalls):
            async with limits.lend(ANNA):
                pass
        async with limits.lend(BOB):
            done.set()
    assert most == 2
    async with limits.lend(ANNA):
        pass


async def test_token_has_the_budget_of_a_person_and_calls_are_recorded(tmp_path: Path) -> None:
    settings = Settings.model_validate({"limits": {"questions_per_user": 2}})
    with opened(tmp_path / "home") as store:
        limits = CallLimits(LocalService(App(settings, store, **kept(store))))

        async def ask(asker: Any) -> Any:
            async with limits.lend(asker) as service:
                return await service.answer(TurnRequest("When does the quay open?", asker), lambda _: None)

        first = await ask(ANNA)
        done = [first, *await asyncio.gather(ask(ANNA), ask(ANNA)), await ask(BOB)]
        turns = await RecordSearch(store.manifest.database).find(RecordFilter(asker="mcp:tokens/anna"))

    assert sorted(turn.answer.status for turn in done) == ["abstained"] * 3 + ["refused"]
    refused = next(turn for turn in done if turn.answer.status is Status.REFUSED)
    assert refused.text == refused.failure.message
    assert {turn.turn_id: turn.status for turn in turns} == {turn.answer_id: turn.answer.status for turn in done[:3]}


async def test_home_is_open_during_calls() -> None:
    events = []

    @asynccontextmanager
    async def open_home() -> AsyncIterator[Any]:
        events.append("opened")
        await asyncio.sleep(0)
        yield "service"
        events.append("closed")

    home, owner = SharedHome(open_home), make_owner_asker("root")
    async with home.running():
        async with home.lend(owner) as one, home.lend(owner) as other:
            assert (one, other, events) == ("service", "service", ["opened"])
        async with home.lend(owner):
            pass
    assert events in (["opened", "closed"], ["opened", "closed"] * 2)


async def test_failed_opening_of_the_home_is_retried_by_the_next_call() -> None:
    tries = 0

    @asynccontextmanager
    async def open_home() -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("locked")
        yield "service"

    home, owner = SharedHome(open_home), make_owner_asker("root")
    async with home.running():
        with pytest.raises(OSError, match="locked"):
            async with home.lend(owner):
                pass
        async with home.lend(owner) as service:
            assert service == "service"
