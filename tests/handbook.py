"""Index the example handbook in a home, once for all test processes."""

import asyncio
import shutil
from pathlib import Path

from filelock import FileLock

HANDBOOK = Path(__file__).parents[1] / "examples" / "handbook"


def make_home(shared: Path) -> Path:
    """Return a home in a folder that all processes share, with the corpus "handbook" and the embedding model."""
    home, part = shared / "handbook", shared / "handbook.part"
    with FileLock(shared / "handbook.lock"):
        if not home.exists():
            asyncio.run(_fill(part))
            part.rename(home)
    return home


def copy_home(made: Path, home: Path) -> Path:
    return Path(shutil.copytree(made, home, dirs_exist_ok=True))


async def _fill(home: Path) -> None:
    from evaluation.workbench import open_corpus
    from ingest.sources.folder import FolderSource

    async with open_corpus(FolderSource(HANDBOOK), "handbook", home):
        pass
