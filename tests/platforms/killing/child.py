"""The process that is killed: a real app and desk, and what connects it to a fake platform in the test's process."""

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.pipeline.world import registered
from tests.platforms.killing.bots import BOTS
from tests.platforms.killing.fuses import Fuse, Tell, rigged
from tests.platforms.killing.lives import Life, parsed
from tests.platforms.systems import recite
from tests.platforms.world import open_world


async def live(life: Life, tell: Tell) -> None:
    """Be a bot until killed."""
    fuse = Fuse(life.point)
    with open_world(Path(life.home)) as opened:
        systems = registered(extractive=recite) if life.traits.get("recites") else {}
        app = replace(opened, systems={**opened.systems, **systems})
        linger = fuse.until_said if life.traits.get("lingers") else None
        async with BOTS[life.bot](rigged(app, fuse, tell, linger), life, fuse, tell):
            await asyncio.Event().wait()


def main(line: str, tell: Tell) -> None:
    """Live the life that a line of JSON tells."""
    asyncio.run(live(parsed(line), tell))
