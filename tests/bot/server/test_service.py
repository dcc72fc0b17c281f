"""What a refresh goes by: the command that asks for it, else the settings in force."""

from pathlib import Path

from bot.server.service import LocalService
from bot.settings.live.live_settings import LiveSettings
from bot.settings.tables.settings_tables import DenseChoice, Settings
from bot.wiring import App
from storage.types import DenseMode
from tests.storage.stores import kept, opened

TRIED: list[tuple[DenseChoice, DenseChoice | None]] = [("eager", None), ("eager", "lazy"), ("off", None), ("eager", "")]


def written(home: Path, dense: DenseChoice) -> Settings:
    source = {"type": "folder", "path": home / "docs"}
    return Settings.model_validate({"home": home, "corpus": [{"name": "docs", "dense": dense, "source": source}]})


async def test_how_much_is_embedded_follows_the_command_and_else_the_settings_in_force(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "quay.md").write_text("# Quay\n\nThe quay opens at seven.\n")
    live = LiveSettings(written(tmp_path, "eager"))
    with opened(tmp_path) as store:
        home, modes = LocalService(App(live, store, **kept(store))), list[DenseMode]()
        source = live.current.sources["docs"]
        tried: list[tuple[DenseChoice, DenseChoice | None]] = [
            ("eager", None),
            ("eager", "lazy"),
            ("off", None),
            ("eager", ""),
        ]
        for current, asked in tried:
            live.current = written(tmp_path, current)
            await home.refresh("docs", source, lambda _: None, dense=asked)
            modes += [one.dense for one in await store.manifest.catalogue()]

    assert modes == [DenseMode.EAGER, DenseMode.LAZY, DenseMode.OFF, DenseMode.OFF]
