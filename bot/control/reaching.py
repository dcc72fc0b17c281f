"""Reaches the server that has a home open, if there is one. It loads next to nothing where there is none."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.control.address import socket_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bot.home import Home


@asynccontextmanager
async def reached(home: Path) -> AsyncIterator[Home | None]:
    """Give the home as its server offers it; None where none answers, such as one that was killed.

    Raises:
        OtherVersion: The server that answers runs another version of the code.
    """
    path = socket_of(home)
    if not path:
        yield None
        return
    from bot.control.client import opened

    async with opened(path) as remote:
        yield remote
