"""Take screenshots of the pages for the guides: `make pictures`, or `python -m tools.pictures NAME` for one."""

import asyncio
import sys
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.app import App
from tools.pictures.example_company import opened, thinking
from tools.pictures.pages_scenes import SCENES
from tools.pictures.scene import Scene, at
from tools.pictures.screenshot import NoBrowser, browser, photograph

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


async def played(names: Collection[str], program: str) -> None:
    """Play scenes and write their pictures. Raises `NoBrowser`."""
    with TemporaryDirectory(prefix="handbook-") as folder:
        async with opened(Path(folder, "home")) as app:
            for scene in (possible for possible in SCENES if not names or possible.name in names):
                await _pictured(app, scene, program)


async def _pictured(app: App, scene: Scene, program: str) -> None:
    page = await scene.play(thinking(app, scene.llm() if scene.llm else None), at(scene))
    picture = await asyncio.to_thread(photograph, page, program)
    made = PICTURES / f"{scene.name}.png"
    await asyncio.to_thread(made.write_bytes, picture)
    print(f"{made.name}: {len(picture) / 1024:.0f} KB")


def main(names: Collection[str]) -> int:
    """Make the pictures, and return the exit status."""
    if strange := [name for name in names if name not in {scene.name for scene in SCENES}]:
        print(f"There is no picture {strange[0]!r}.", file=sys.stderr)
        return 2
    PICTURES.mkdir(exist_ok=True)
    try:
        asyncio.run(played(names, browser()))
    except NoBrowser as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
