"""Take screenshots of the web pages for the guides: `make pictures`, or `python -m tools.pictures NAME` for one."""

import asyncio
import sys
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.settings.tables.settings_tables import Settings
from bot.wiring import open_app
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.folder import FolderSource
from tools.pictures.pages_scenes import SCENES, render_scene
from tools.pictures.screenshot import NoBrowser, find_browser, take_screenshot

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
ADDRESS = "https://handbook.tolliver-ebb.example/"


async def take_pictures(names: Collection[str], program: str) -> None:
    """Ingest the example handbook, and write the pictures of the named scenes; of all if none is named."""
    channels = [{"id": "slack:T1/C1", "ask": ["slack:T1/U2"]}, {"id": "discord:301/201", "ask": ["discord:301/102"]}]
    values = {"corpus": [{"name": "handbook", "visible_to": ["*"]}], "channel": channels}
    with TemporaryDirectory(prefix="handbook-") as folder:
        settings = Settings.model_validate({"home": Path(folder), "slack": {"admins": ["slack:T1/U9"]}, **values})
        async with open_app(settings) as app:
            handbook = FolderSource(ROOT / "examples" / "handbook", url_base=ADDRESS)
            await refresh_corpus(handbook, "handbook", app.passages, progress=lambda _: None)
            for name in names or SCENES:
                picture = await asyncio.to_thread(take_screenshot, await render_scene(app, name), program)
                await asyncio.to_thread((PICTURES / f"{name}.png").write_bytes, picture)
                print(f"{name}.png: {len(picture) / 1024:.0f} KB")


def main(names: Collection[str]) -> int:
    """Make the pictures, and return the exit status."""
    if unknown := [name for name in names if name not in SCENES]:
        print(f"There is no picture {unknown[0]!r}.", file=sys.stderr)
        return 2
    PICTURES.mkdir(exist_ok=True)
    try:
        asyncio.run(take_pictures(names, find_browser()))
    except NoBrowser as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
