"""The doctor looks at each source of the settings as far as this machine goes, and asks no server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.doctor.checks.server_checks import examine_sources
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import SourceContext

GIT = {"type": "git", "url": "https://git.example.com/docs.git", "token_env": "DOCS_TOKEN"}
SECRET = "glpat-hush"


def examine(environment: Mapping[str, str] | None = None, **given: dict[str, Any]) -> list[tuple[str, str, str]]:
    corpora = [{"name": name, "source": source} for name, source in given.items()]
    settings = Settings.model_validate({"corpus": corpora})
    results = examine_sources(settings.sources, SourceContext(Path(".footnote"), environment or {}))
    return [(result.level, result.what, result.hint) for result in results]


def test_missing_folder_or_dump_fails() -> None:
    Path("docs").mkdir()
    (folder, dump) = examine(
        docs={"type": "folder", "path": "docs"},
        lost={"type": "folder", "path": "lost"},
        wiki={"type": "wikipedia", "dump": "wiki.xml.bz2"},
    )

    assert folder[:2] == ("fail", f"Sources: lost is read from {Path('lost').absolute()}, which does not exist.")
    assert dump[1].startswith("Sources: wiki is read from ")
    assert "mount the missing volume" in dump[2]


@pytest.mark.parametrize("environment", [{}, {"DOCS_TOKEN_FILE": "nowhere"}])
def test_missing_secret_of_a_source_fails(environment: dict[str, str]) -> None:
    ((level, what, hint),) = examine(environment, docs=GIT)

    assert level == "fail"
    assert "DOCS_TOKEN" in what
    assert hint


def test_openable_sources_are_listed() -> None:
    Path("docs").mkdir()
    results = examine({"DOCS_TOKEN": SECRET}, docs={"type": "folder", "path": "docs"}, code=GIT)

    assert results == [
        ("ok", "Sources: 2 sources can be opened: docs (folder), code (git).", ""),
        ("skip", "Sources: the servers of code were not contacted; `footnote ingest all` does.", ""),
    ]
    assert examine() == []
