"""A home with the pages of `world` in it, indexed once."""

import asyncio
from pathlib import Path

import pytest

from tests.platforms.world import fill


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home to copy: nobody opens it as it is."""
    home = tmp_path_factory.mktemp("filled") / "home"
    asyncio.run(fill(home))
    return home
