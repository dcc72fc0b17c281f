"""What the sources of corpora need of this machine."""

import pytest

from bot.doctor.checks.reader_checks import examine_engine, examine_programs
from bot.doctor.checks.server_checks import _check_git_version
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.refresh.ray_engine import EngineUnavailable
from tests.ingest.engines.pickling import PicklingEngine


def test_git_is_looked_for(tmp_path):
    for version, level, expected in (("2.47.1", "ok", "reads handbook"), ("2.20.1", "fail", "too old")):
        program = tmp_path / version
        program.write_text(f"#!/bin/sh\necho git version {version}\n")
        program.chmod(0o700)

        results = _check_git_version(str(program), "handbook")

        assert results.level == level
        assert expected in results.what
        assert bool(results.hint) is (level == "fail")
    missing = _check_git_version(None, "handbook")
    assert (missing.level, "not installed" in missing.what, bool(missing.hint)) == ("fail", True, True)


@pytest.mark.parametrize(
    ("programs", "installed", "expected"),
    [
        (NO_PROGRAMS, {}, []),
        (ReaderPrograms(ocr=True), {}, [("fail", "tesseract is not installed")]),
        (ReaderPrograms(ocr=True), {"tesseract": "eng\nosd"}, [("ok", "reads them, in eng")]),
        (
            ReaderPrograms(ocr=True, ocr_languages=("eng", "deu"), libreoffice=True),
            {"tesseract": "eng"},
            [("fail", "lacks deu"), ("fail", "not installed")],
        ),
        (ReaderPrograms(libreoffice=True), {"soffice": ""}, [("ok", "soffice opens .doc")]),
    ],
)
def test_programs_that_readers_may_call_are_looked_for(programs, installed, expected):
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
    def map(self, work, items):  # noqa: ARG002 - it does nothing
        raise EngineUnavailable("The Ray cluster at h:1 cannot be reached.", hint="Check the address.")


def test_a_cluster_that_reads_is_given_a_little_to_do():
    away = examine_engine(AwayEngine())

    assert examine_engine(PicklingEngine()).level == "ok"
    assert (away.level, away.what, away.hint) == (
        "fail",
        "Ray: The Ray cluster at h:1 cannot be reached.",
        "Check the address.",
    )
