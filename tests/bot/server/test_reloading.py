"""Test that `footnote serve` reads changed settings on SIGHUP and on `footnote reload`, while people ask."""

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path

from bot.access import Asker
from bot.server.control.control_socket import connect_service
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest
from bot.wiring import open_records
from storage.types import EntryKind
from tests.bot.server.server import run, run_json, serving
from tests.thorough import THOROUGH

CHANGES, AT_ONCE = (20, 4) if THOROUGH else (5, 1)
CORPORA = ("salaries", "handbook")
ASKER = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)
REQUEST = TurnRequest("What do the vaults hold?", ASKER)
WRONG = "[[corpus]]\nname = 'salaries'\n"  # a second corpus of this name


def write(path: Path, scope: frozenset[str], more: str = "") -> None:
    tables = (f"[[corpus]]\nname = '{name}'\nvisible_to = {['slack:T1/C1'] * (name in scope)}\n" for name in CORPORA)
    path.write_text("\n".join(["[http]\nport = 0", *tables, more]))


async def test_settings_change_under_load_by_signal_and_by_command(here: Path) -> None:
    file, scopes = here / "footnote.toml", [frozenset[str]()]
    write(file, scopes[0])
    for name in CORPORA:
        (here / name).mkdir()
        (here / name / "page.md").write_text(f"# Vaults\n\nThe vaults of the {name} hold maps.\n")
        await asyncio.to_thread(run_json, "ingest", "folder", name, "--corpus", name)
    asked, ended = dict[str, int](), asyncio.Event()

    async with AsyncExitStack() as stack:
        server = stack.enter_context(serving())
        service = await stack.enter_async_context(connect_service(here / ".footnote"))
        assert service

        async def ask() -> frozenset[str]:
            version, done = len(scopes) - 1, await service.answer(REQUEST, lambda _: None)
            asked[done.answer_id] = version
            return frozenset(citation.corpus for citation in done.answer.citations)

        async def ask_on() -> None:
            while not ended.is_set():
                await ask()

        loading = [asyncio.create_task(ask_on()) for _ in range(AT_ONCE)]
        for number in range(CHANGES):
            wrong, scope = number % 4 == 3, frozenset(name for bit, name in enumerate(CORPORA) if number + 1 >> bit & 1)
            write(file, scope, WRONG if wrong else "")
            if number % 2:
                command = await asyncio.to_thread(run, "reload")
                assert command.exit_code == int(wrong)
            else:
                server.process.send_signal(signal.SIGHUP)
            expected = "settings rejected" if wrong else "settings applied"
            await asyncio.to_thread(server.read_until, expected)
            scopes += [] if wrong else [scope]
            assert await ask() == scopes[-1]
        ended.set()
        await asyncio.gather(*loading)
        file.rename(here / "bad.toml")
        command = await asyncio.to_thread(run, "reload")
        assert (command.exit_code, "footnote.toml was deleted" in command.stderr) == (1, True)
        assert await ask() == scopes[-1]
        assert server.stop() == 0
    assert "has two entries named 'salaries'" in json.dumps(server.lines)

    async with open_records(Settings(home=here / ".footnote")) as records:
        turns = [await records.audit.turn(answer_id) for answer_id in asked]
    opened = {turn[0].turn_id: frozenset(turn[0].body["corpora"]) for turn in turns}
    assert len(opened) == len(asked) > CHANGES
    assert all([entry.kind for entry in turn].count(EntryKind.TURN_CLOSED) == 1 for turn in turns)
    assert all(scope in scopes[asked[answer_id] :] for answer_id, scope in opened.items())
