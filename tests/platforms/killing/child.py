"""The process that is killed: a real app and desk, and the fake platform's client.

python -m tests.platforms.killing.child '{"home": "...", "url": "http://127.0.0.1:...", "point": ["put", "after", 1]}'
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.platforms.desks import opened_bot
from tests.platforms.dialects import DIALECTS
from tests.platforms.fake_platform import FakePlatform
from tests.platforms.killing.fuses import Fuse, FusedPlatform, FusedWire, rigged
from tests.platforms.killing.lives import Life, parsed
from tests.platforms.wire import wired
from tests.platforms.world import open_world


async def live(life: Life) -> None:
    """Be a bot until killed."""
    fuse = Fuse(life.point)
    dialect = DIALECTS[life.dialect]
    if life.message:
        dialect = dialect.smaller(life.message)
    with open_world(Path(life.home)) as app:
        async with wired(life.url) as wire:

            async def finished(key: str) -> None:
                await wire.call("finished", key=key)

            traits = {"edits": life.edits, "reads_back": life.reads_back, "pace": life.pace}
            platform = FakePlatform(dialect, FusedWire(wire, fuse), wire.url, wire.http, **traits)
            fused: Any = FusedPlatform(platform, fuse)
            async with opened_bot(rigged(app, fuse, finished), platform, at_desk=fused):
                await asyncio.Event().wait()


def main(line: str) -> None:
    """Live the life that a line of JSON tells."""
    asyncio.run(live(parsed(line)))


if __name__ == "__main__":
    main(sys.argv[1])
