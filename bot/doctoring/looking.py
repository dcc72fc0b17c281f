"""Looks at the home and its database once, for all checks that ask about them. Nothing is made or changed."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from bot.control.reaching import reached
from bot.doctoring.checks import OpenModel, Scene
from bot.settings import Settings
from storage.database import open_database
from storage.examining import clocks, look_at
from storage.lock import holder
from storage.manifest import Manifest

CHECK_SECONDS = 20.0
"""How long SQLite may look through its file."""


async def scene(settings: Settings, open_model: OpenModel, *, now: datetime | None = None) -> Scene:
    """Return what there is to look at."""
    plain = Scene(settings, now or datetime.now(UTC), open_model)
    owner, serving = await _ownership(settings)
    return replace(await _with_database(plain), owner=owner, serving=serving)


async def _ownership(settings: Settings) -> tuple[str | None, bool]:
    try:
        owner = await asyncio.to_thread(holder, settings.home)
    except Exception:  # noqa: BLE001 - the check of the home tells of it
        return None, False
    return owner, bool(owner) and await _answers(settings)


async def _answers(settings: Settings) -> bool:
    try:
        async with reached(settings.home) as served:
            return served is not None
    except Exception:  # noqa: BLE001 - a server of another version answers too, and its owner is told
        return False


async def _with_database(scene: Scene) -> Scene:
    settings, file = scene.settings, scene.settings.home / "footnote.db"
    try:
        if not settings.database:
            if not file.exists():
                return scene
            scene = replace(scene, file=await asyncio.to_thread(look_at, file, seconds=CHECK_SECONDS))
            if scene.file and scene.file.revision != "fits":
                return scene
        with open_database(settings.database, home=settings.home, read_only=True) as database:
            scene = replace(scene, clocks=await clocks(database))
            return replace(scene, corpora=await Manifest(database).corpora())
    except Exception as error:  # noqa: BLE001 - the check of the database tells of it
        return replace(scene, fault=error)
