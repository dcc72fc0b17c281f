"""Tests of the settings that a refresh uses: those of the command, else the current ones."""

import gc
from contextlib import AsyncExitStack
from pathlib import Path

from bot.app import App
from bot.server.service import LocalService, load_ahead
from bot.settings.live.live_settings import LiveSettings
from bot.settings.tables.settings_tables import DenseChoice, Settings
from pipeline.llm.model_client import LazyModel
from pipeline.llm.model_settings import ModelSettings
from storage.language.lazy_pattern import lazy_compile
from storage.types import DenseMode
from tests.storage.stores import kept, opened

CHOICES: list[tuple[DenseChoice, DenseChoice | None]] = [
    ("eager", None),
    ("eager", "lazy"),
    ("off", None),
    ("eager", ""),
]
"""The choice of the settings, and that of the command."""


def written(home: Path, dense: DenseChoice) -> Settings:
    source = {"type": "folder", "path": home / "docs"}
    return Settings.model_validate({"home": home, "corpus": [{"name": "docs", "dense": dense, "source": source}]})


async def test_dense_mode_follows_the_command_then_the_current_settings(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "quay.md").write_text("# Quay\n\nThe quay opens at seven.\n")
    live = LiveSettings(written(tmp_path, "eager"))
    with opened(tmp_path) as store:
        home, modes = LocalService(App(live, store, **kept(store))), list[DenseMode]()
        source = live.current.sources["docs"]
        for current, asked in CHOICES:
            live.current = written(tmp_path, current)
            await home.refresh("docs", source, lambda _: None, dense=asked)
            modes += [corpus.dense for corpus in await store.manifest.catalogue()]

    assert modes == [DenseMode.EAGER, DenseMode.LAZY, DenseMode.OFF, DenseMode.OFF]


async def test_loading_ahead_freezes_objects_and_ignores_an_unusable_model(tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path, "model": {"name": "m"}})
    pattern, thresholds = lazy_compile("[a-z]+"), gc.get_threshold()
    try:
        with opened(tmp_path) as store:
            async with AsyncExitStack() as stack:
                model = LazyModel(ModelSettings("m"), stack)  # the settings have no key
                await load_ahead(App(LiveSettings(settings), store, **kept(store), llm=model))
        assert gc.get_freeze_count()
        assert vars(pattern)["_compiled"]
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
