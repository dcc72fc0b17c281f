"""Ending a stream with the block that reads it: whoever stops reading a reply ends its call then, not at some time."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def closing(stream: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Close a stream when the block ends, however it ends; unlike `contextlib.aclosing`, of any async iterator."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


async def replayed(values: tuple[T, ...]) -> AsyncGenerator[T, None]:
    """Yield values that are there already."""
    for value in values:
        yield value
