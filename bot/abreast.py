"""Blocks that are entered one after the other and left all at once: the times that they may take run together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any


@asynccontextmanager
async def abreast(*blocks: AbstractAsyncContextManager[Any]) -> AsyncIterator[tuple[Any, ...]]:
    """Enter blocks in order, and leave them at the same time. Gives what each gives.

    Raises what entering one raises; what was entered before is left then. Of what leaving raises, the first.
    """
    stacks = [AsyncExitStack() for _ in blocks]
    try:
        yield tuple([await stack.enter_async_context(block) for stack, block in zip(stacks, blocks, strict=True)])
    finally:
        left = await asyncio.gather(*(stack.aclose() for stack in stacks), return_exceptions=True)
        for error in left:
            if isinstance(error, BaseException):
                raise error
