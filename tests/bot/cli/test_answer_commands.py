"""Pinned answers by command: pin with a corrected text, list, drop."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.answering.question_answering import answer
from bot.app import App
from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest
from ingest.refresh.corpus_refresh import refresh_corpus
from tests.bot.test_answering import PAGES, SYSTEMS, TERMINAL
from tests.fakes import PageSource
from tests.storage.stores import kept, opened


@pytest.fixture
def config(tmp_path: Path) -> Path:
    async def prepare() -> None:
        with opened(tmp_path / "home") as store:
            await refresh_corpus(PageSource(PAGES), "handbook", store, progress=lambda _: None)
            services = App(Settings(home=tmp_path / "home"), store, **kept(store), systems=SYSTEMS)
            request = TurnRequest("When does the vault open?", TERMINAL, system="quoting", id="abc123")
            await answer(services, request, lambda _: None)

    asyncio.run(prepare())
    file = tmp_path / "footnote.toml"
    file.write_text(f'home = "{tmp_path / "home"}"\n')
    return file


def run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["answers", *arguments], obj=CliState(config=config), prog_name="footnote")


def test_corrected_answer_is_pinned_listed_and_dropped(config: Path, tmp_path: Path) -> None:
    text = tmp_path / "better.txt"
    text.write_text("It closes at six [1].", encoding="utf-8")
    assert "No answer is pinned yet." in run(config, "list").stdout
    assert "abc123 is pinned." in run(config, "pin", "abc", "--text", str(text), "--by", "Ana").stdout
    assert "Ana" in run(config, "list").stdout
    (listed,) = json.loads(run(config, "list", "--json").stdout)["answers"]
    assert [listed[name] for name in ("answer_id", "text", "name")] == ["abc123", "It closes at six.", "Ana"]
    assert listed["said"] is True
    assert "abc123 is no longer pinned." in run(config, "drop", "abc").stdout
    assert json.loads(run(config, "list", "--json").stdout)["answers"] == []
    assert "No pinned answers begin with" in run(config, "drop", "abc").stderr


def test_unsupported_text_is_refused_with_the_reason(config: Path, tmp_path: Path) -> None:
    text = tmp_path / "worse.txt"
    text.write_text("The vault opens at ten.", encoding="utf-8")

    refused = run(config, "pin", "abc123", "--text", str(text))

    assert (refused.exit_code, "It cites nothing." in " ".join(refused.stderr.split())) == (1, True)
    assert "cannot be read" in run(config, "pin", "abc123", "--text", str(tmp_path / "none.txt")).stderr
    assert "There is no answer" in run(config, "pin", "zzz").stderr
