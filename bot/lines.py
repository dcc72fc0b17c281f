"""What happens in one channel is taken in the order in which it arrives, whichever is looked up faster."""

import asyncio
from weakref import WeakValueDictionary


class Lines:
    """A line for each channel, in which whoever comes first is first."""

    def __init__(self) -> None:
        """Begin with none."""
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    def of(self, channel: str) -> asyncio.Lock:
        """Return a channel's line: within it nothing else of that channel is taken."""
        return self._locks.setdefault(channel, asyncio.Lock())

    async def passed(self, channel: str) -> None:
        """Wait until what is just being taken in a channel is known."""
        async with self.of(channel):
            pass
