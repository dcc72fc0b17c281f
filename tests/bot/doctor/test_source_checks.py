"""The sources of the settings, checked as far as this machine goes, and the programs and engines that they use."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.doctor.checks.reader_checks import examine_engine, examine_programs
from bot.doctor.checks.server_checks import _check_git_version, examine_sources
from bot.doctor.diagnosis import CheckResult
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import SourceContext
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.refresh.ray_engine import EngineUnavailable
from tests.ingest.engines.pickling import PicklingEngine

GIT = {"type": "git", "url": "https://git.example.com/docs.git", "token_env": "DOCS_TOKEN"}
SECRET = "glpat-hush"


def examine(environment: Mapping[str, str] | None = None, **sources: dict[str, Any]) -> list[tuple[str, str, str]]:
    corpora = [{"name": name, "source": source} for name, source in sources.items()]
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


def test_sources_that_can_be_opened_are_listed() -> None:
    Path("docs").mkdir()
    results = examine({"DOCS_TOKEN": SECRET}, docs={"type": "folder", "path": "docs"}, code=GIT)

    assert results == [
        ("ok", "Sources: 2 sources can be opened: docs (folder), code (git).", ""),
        ("skip", "Sources: the servers of code were not contacted; `footnote ingest all` contacts them.", ""),
    ]
    assert examine() == []


def test_git_must_be_installed_and_recent(tmp_path: Path) -> None:
    for version, level, expected in (("2.47.1", "ok", "reads handbook"), ("2.20.1", "fail", "too old")):
        program = tmp_path / version
        program.write_text(f"#!/bin/sh\necho git version {version}\n")
        program.chmod(0o700)

        result = _check_git_version(str(program), "handbook")
        assert (result.level, expected in result.what, bool(result.hint)) == (level, True, level == "fail")
    missing = _check_git_version(None, "handbook")
    assert (missing.level, "not installed" in missing.what, bool(missing.hint)) == ("fail", True, True)


@pytest.mark.parametrize(("programs", "installed", "expected"), [
    (NO_PROGRAMS, {}, []),
    (ReaderPrograms(ocr=True), {}, [("fail", "tesseract is not installed")]),
    (ReaderPrograms(ocr=True), {"tesseract": "eng\nosd"}, [("ok", "reads them, in eng")]),
    (ReaderPrograms(ocr=True, ocr_languages=("eng", "deu"), libreoffice=True), {"tesseract": "eng"}, [("fail",
     "lacks deu"), ("fail", "not installed")]),
    (ReaderPrograms(libreoffice=True), {"soffice": ""}, [("ok", "soffice opens .doc")]),
])  # fmt: skip
def test_enabled_reader_programs_must_be_installed(
    programs: ReaderPrograms, installed: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    results = list(
        examine_programs(
            programs, lambda names: next(filter(installed.__contains__, names), None), lambda call: installed[call[0]]
        )
    )

    assert [(result.level, any(words in result.what for _, words in expected)) for result in results] == [
        (level, True) for level, _ in expected
    ]
    assert all(result.hint for result in results if result.level == "fail")


class AwayEngine(PicklingEngine):
    def map(self, work: Any, items: Any) -> Any:  # noqa: ARG002 - it does nothing
        raise EngineUnavailable("The Ray cluster at h:1 cannot be reached.", hint="Check the address.")


def test_cluster_is_checked_by_a_small_task() -> None:
    away = examine_engine(AwayEngine())

    assert examine_engine(PicklingEngine()).level == "ok"
    assert away == CheckResult("fail", "Ray: The Ray cluster at h:1 cannot be reached.", "Check the address.")
