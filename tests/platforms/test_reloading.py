"""Settings change while users ask: no answer is lost or repeated, and each keeps to the scope in force."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from bot.app import App
from bot.server.settings_reload import SettingsReload
from bot.settings.live.live_settings import LiveSettings, list_scope
from bot.settings.live.scope_record import ScopeRecord
from bot.settings.settings_reader import load_settings
from bot.types import QuestionState
from bot.views.catalog import translate
from storage.types import QueuedQuestion
from tests.bot.desk.rights_matrix import CORPORA, find_corpora, reveal_everything
from tests.pipeline.world import registered
from tests.platforms.bots import eventually, text
from tests.platforms.systems import Gated
from tests.platforms.workspace import Workspace
from tests.platforms.workspaces import TESTED, WORKSPACES
from tests.storage.stores import kept, opened
from tests.thorough import THOROUGH

CHANGES, AT_ONCE = (20, 2) if THOROUGH else (6, 1)
WRONG = ("visible_too = []", "[[corpus]", "[limits]\nseconds = 'long'", "[[channel]]\nid = 'slack:T1/C1'\nsystem = 'x'")
ASKED = "What do the vaults hold?"
Scope = frozenset[str]


@dataclass
class Office:
    """A bot whose settings are in a file that tests rewrite."""

    workspace: Workspace
    app: App
    file: Path
    platform: str
    """The other lines of the file."""
    reloading: SettingsReload
    system: Gated
    scopes: list[Scope] = field(default_factory=list)
    """The corpora readable in the first channel, by version of the file."""
    asked: dict[str, int] = field(default_factory=dict)
    """The version that was in force, by question."""

    async def change(self, number: int) -> None:
        """Write another version of the file; every fourth is invalid, and changes nothing."""
        scope = frozenset(name for bit, name in enumerate(CORPORA) if (number + 1) >> bit & 1)
        channel = f"{self.workspace.name}:{self.workspace.team}/{self.workspace.channels[0]}"
        corpora = [
            f"[[corpus]]\nname = '{name}'\nvisible_to = {json.dumps([channel] * (name in scope))}" for name in CORPORA
        ]
        wrong = WRONG[number // 4 % len(WRONG)] if number % 4 == 3 else ""
        self.file.write_text("\n".join([self.platform, *corpora, wrong]))
        report = await self.reloading.reload()
        assert bool(report.faults) == bool(wrong), report
        self.scopes += [] if wrong else [scope]

    async def ask(self, number: int) -> str:
        workspace, version = self.workspace, len(self.scopes) - 1
        asks: str = await workspace.say(f"{ASKED} {number}", user=workspace.users[0], channel=workspace.channels[0])
        self.asked[asks] = version
        return asks

    async def row(self, asks: str) -> QueuedQuestion | None:
        """Return a message's row of the queue."""
        workspace = self.workspace
        return await self.app.queue.by_message(f"{workspace.name}:{workspace.team}/{workspace.channels[0]}", asks)

    async def answered(self, asks: str) -> Scope:
        async def is_done() -> bool:
            row = await self.row(asks)
            return row is not None and row.state == QuestionState.DONE

        await eventually(is_done)
        found: Scope = find_corpora(text(self.workspace.answer(asks)))
        return found


@pytest.fixture(params=TESTED)
async def office(request: pytest.FixtureRequest, vaults: Path, tmp_path: Path) -> AsyncIterator[Office]:
    home, file = Path(shutil.copytree(vaults, tmp_path / "home")), tmp_path / "footnote.toml"
    file.write_text(f"home = '{home}'")
    async with WORKSPACES[request.param]() as workspace, AsyncExitStack() as stack:
        store = stack.enter_context(opened(home))
        live = LiveSettings(load_settings(file))
        system = Gated(reveal_everything)
        app = App(live, store, systems=registered(extractive=system), **kept(store))
        await stack.enter_async_context(workspace.joined(app))
        reloading = SettingsReload(live, partial(load_settings, file), ScopeRecord(app.audit))
        await reloading.begin()
        admits = (f"{key} = {json.dumps(value)}" for key, value in list_scope(live.current).items() if value)
        yield Office(workspace, app, file, "\n".join([f"home = '{home}'", *admits]), reloading, system)


async def test_settings_reload_under_load_loses_and_leaks_nothing(office: Office) -> None:
    await office.change(0)
    changing = asyncio.Event()

    async def load() -> None:
        number = 1_000
        while not changing.is_set():
            number += 1
            await office.answered(await office.ask(number))

    loading = [asyncio.create_task(load()) for _ in range(AT_ONCE)]
    for number in range(1, CHANGES):
        await office.change(number)
        asks = await office.ask(number)
        assert await office.answered(asks) == office.scopes[-1], text(office.workspace.answer(asks))
    changing.set()
    await asyncio.gather(*loading)

    count = 0
    for asks, version in office.asked.items():
        answer = office.workspace.answer(asks)
        said, count = text(answer), count + len(answer)
        assert said.count("vaults of zebra") <= 1
        # A question whose scope was narrowed twice meanwhile must be asked again.
        assert find_corpora(said) in office.scopes[version:] or said == translate("desk_narrowed", "en")
    rows = [await office.row(asks) for asks in office.asked]
    assert {(row.state, row.outcome) for row in rows if row} == {("done", "delivered")}
    assert len(rows) == len({row.turn_id for row in rows if row}) > CHANGES
    assert len(office.workspace.seen(office.workspace.channels[0], by=office.workspace.users[0])) == count


async def test_running_turn_loses_withdrawn_corpora_and_gains_none(office: Office) -> None:
    first, second, *_ = CORPORA
    for before, after, shown in ((0, 2, {first}), (2, 1, {second})):
        await office.change(before)
        office.system.shut.add(f"{ASKED} {before}")
        turns = len(office.system.talks)
        asks = await office.ask(before)
        await office.system.until_asked(turns + 1)
        await office.change(after)
        await office.system.open()
        assert await office.answered(asks) == shown
        assert await office.answered(await office.ask(9)) == office.scopes[-1]
