"""A home with the pages of `world` in it, indexed once."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platforms.world import fill


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home to copy: nobody opens it as it is."""
    home = tmp_path_factory.mktemp("filled") / "home"
    asyncio.run(fill(home))
    return home


@pytest.fixture(autouse=True)
def no_heartbeats() -> Iterator[None]:
    """See that no test leaves a heartbeat of discord.py's behind: it would stumble in another test."""
    yield
    assert [one.name for one in threading.enumerate() if one.name.startswith("keep-alive-handler")] == []
