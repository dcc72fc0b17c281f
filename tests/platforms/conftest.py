"""Fixtures: a home with the example pages, indexed once, and a bot in each workspace of the contract suite."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.platforms.bots import Bot, bot_in
from tests.platforms.example_app import fill
from tests.platforms.fakes_digest import are_unchanged
from tests.platforms.workspaces import TESTED, WORKSPACES
from tests.thorough import THOROUGH


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fakes: tests of the fake servers, which run only after a change of them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not THOROUGH and are_unchanged():
        skip = pytest.mark.skip(reason="the fake servers are unchanged since their tests passed; see fakes_digest.py")
        for item in items:
            if "fakes" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home to copy."""
    home = tmp_path_factory.mktemp("filled") / "home"
    asyncio.run(fill(home))
    return home


@pytest.fixture(params=TESTED)
async def bot(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    """Return a bot in a workspace, not started yet."""
    async with bot_in(WORKSPACES[request.param](), filled, tmp_path / "home") as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_heartbeats() -> Iterator[None]:
    """Assert that no test leaves a heartbeat thread of discord.py behind, which would fail in another test."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("keep-alive-handler")] == []
