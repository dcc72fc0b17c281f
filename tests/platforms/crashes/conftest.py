"""The fork server, and a home with a long book."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platforms.crashes.bot_processes import ForkServer, fork_server
from tests.platforms.example_app import BOOK, fill


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    with fork_server() as server:
        yield server


@pytest.fixture(scope="session")
def library(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home to copy, with a long book in it."""
    home = Path(shutil.copytree(filled, tmp_path_factory.mktemp("library") / "home"))
    asyncio.run(fill(home, BOOK))
    return home
