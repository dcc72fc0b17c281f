"""Check the programs that read documents for Footnote: tesseract, LibreOffice, a Ray cluster."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Sequence

from bot.doctor.diagnosis import CheckResult, Inspection
from ingest.readers.external_programs import OCR_COMMAND, OFFICE_COMMANDS, ReaderPrograms, find_program
from ingest.refresh.ray_engine import RayEngine
from ingest.types import Engine, SourceUnavailable

_SECONDS = 20.0

Ask = Callable[[Sequence[str]], str]
"""Calls a program, and returns its output."""


async def check_reader_programs(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the programs enabled in `[ingest]` are installed, and that tesseract has its languages."""
    return await asyncio.to_thread(lambda: tuple(examine_programs(scene.settings.ingest.programs)))


async def check_engine(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the Ray cluster works, if `[ingest]` names one."""
    settings = scene.settings.ingest
    if settings.engine == "local":
        return ()
    engine = RayEngine(settings.ray_address)
    try:
        return (await asyncio.to_thread(examine_engine, engine),)
    finally:
        await asyncio.to_thread(engine.close)


def examine_engine(engine: Engine) -> CheckResult:
    """Check an engine with a small task. Blocks."""
    try:
        list(engine.map(len, [b""]))
    except SourceUnavailable as error:
        return CheckResult("fail", f"Ray: {error}", error.hint)
    return CheckResult("ok", "Ray: its workers run the same version, and completed a small task.")


def examine_programs(
    programs: ReaderPrograms, find: Callable[[Sequence[str]], str | None] = find_program, ask: Ask | None = None
) -> Iterator[CheckResult]:
    """Check each enabled program, and yield the results. Blocks."""
    if programs.ocr:
        yield _examine_ocr(programs.ocr_languages, find((OCR_COMMAND,)), ask or _ask)
    if programs.libreoffice:
        path = find(OFFICE_COMMANDS)
        hint = "Install it (Debian: libreoffice-writer-nogui, libreoffice-impress-nogui), or set libreoffice = false."
        if path is None:
            yield CheckResult("fail", "LibreOffice: it is not installed, so .doc, .ppt and .rtf are not read.", hint)
        else:
            yield CheckResult("ok", f"LibreOffice: {path} opens .doc, .ppt and .rtf.")


def _examine_ocr(languages: Sequence[str], path: str | None, ask: Ask) -> CheckResult:
    if path is None:
        hint = "Install it (Debian: tesseract-ocr), or set ocr = false in [ingest]."
        return CheckResult("fail", "Scanned pages: tesseract is not installed, so they are not read.", hint)
    installed = set(ask([path, "--list-langs"]).split())
    missing = [name for name in languages if name not in installed]
    if missing:
        packages = ", ".join(f"tesseract-ocr-{name.replace('_', '-')}" for name in missing)
        hint = f"Install them (Debian: {packages}), or change ocr_languages in [ingest]."
        return CheckResult("fail", f"Scanned pages: tesseract lacks {', '.join(missing)}.", hint)
    return CheckResult("ok", f"Scanned pages: tesseract reads them, in {', '.join(languages)}.")


def _ask(call: Sequence[str]) -> str:
    done = subprocess.run(call, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - was found
    return done.stdout
