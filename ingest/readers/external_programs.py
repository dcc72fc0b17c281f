"""Call installed programs that read documents: tesseract for scanned pages, LibreOffice for older Office formats.

Both run in the process group of the sandbox, and end with it. LibreOffice gets a temporary profile, which runs no
macros and follows no links. It runs without network access if the system allows that.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ingest.types import UnreadableDocument

OFFICE_COMMANDS = ("soffice", "libreoffice")
OCR_COMMAND = "tesseract"
_COLUMNS = 12  # of tesseract's output: page, block, paragraph, line, word, place, confidence, text
_UNSEEN = " \u200e\u200f"  # spaces, and marks that set the direction of a line
_SECONDS = 900.0  # wall-clock limit of a call; the sandbox limits processor time


@dataclass(frozen=True, slots=True)
class ReaderPrograms:
    """Which installed programs readers may call."""

    ocr: bool = False  # tesseract, for scanned pages of a PDF
    ocr_languages: tuple[str, ...] = ("eng",)  # by tesseract's names
    libreoffice: bool = False  # for older formats of Office


NO_PROGRAMS = ReaderPrograms()


def find_program(names: Iterable[str]) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


class RecognizedWord(NamedTuple):
    """A recognized word in a picture. Positions are in pixels from the upper left corner."""

    line: tuple[str, ...]  # the same for all words of a line
    left: int
    top: int
    width: int
    height: int
    text: str


def recognize_words(picture: bytes, languages: Sequence[str], *, command: str = OCR_COMMAND) -> list[RecognizedWord]:
    """Return the words in a picture of a page, in reading order. Raises `UnreadableDocument`."""
    program = shutil.which(command)
    if program is None:
        raise UnreadableDocument("holds scanned pages, and tesseract, which reads them, is not installed")
    call = [program, "stdin", "stdout", "-l", "+".join(languages), "tsv"]
    done = _run(call, picture, environment={"OMP_THREAD_LIMIT": "1"})
    if done.returncode:
        errors = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = errors[-1] if errors else "no reason given"
        raise UnreadableDocument(f"holds scanned pages that tesseract cannot read: {reason}")
    rows = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()[1:]]
    return [
        RecognizedWord(tuple(row[1:5]), int(row[6]), int(row[7]), int(row[8]), int(row[9]), text)
        for row in rows
        if len(row) == _COLUMNS and (text := row[11].strip(_UNSEEN))
    ]


def convert_document(content: bytes, suffix: str, target: str, *, commands: Sequence[str] = OFFICE_COMMANDS) -> bytes:
    """Convert a document with LibreOffice to the format with suffix `target`. Raises `UnreadableDocument`."""
    program = find_program(commands)
    if program is None:
        raise UnreadableDocument(f"needs LibreOffice, which is not installed: save it as {target}")
    with tempfile.TemporaryDirectory(prefix="footnote-") as made:
        folder = Path(made)
        source, profile = folder / f"document{suffix}", folder / "profile"
        source.write_bytes(content)
        (profile / "user").mkdir(parents=True)
        (profile / "user" / "registrymodifications.xcu").write_text(_PROFILE, encoding="utf-8")
        call = [
            *_without_network(),
            *(program, "--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck"),
            f"-env:UserInstallation={profile.as_uri()}",
            *("--convert-to", target.removeprefix("."), "--outdir", str(folder / "saved"), str(source)),
        ]
        done = _run(call, b"", environment={"HOME": str(folder)})
        saved = folder / "saved" / f"document{target}"
        if done.returncode or not saved.is_file():
            raise UnreadableDocument(f"cannot be opened by LibreOffice: save it as {target}")
        return saved.read_bytes()


def _run(call: Sequence[str], content: bytes, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - programs on the path, no document text
            call, input=content, capture_output=True, timeout=_SECONDS, check=False, env={**os.environ, **environment}
        )
    except subprocess.TimeoutExpired as error:
        raise UnreadableDocument(f"takes longer than {_SECONDS:g} s to read: split it, or exclude it") from error


@cache
def _without_network() -> tuple[str, ...]:
    """Return the words to put before a command so that it runs without network; empty if the system cannot do that."""
    unshare = shutil.which("unshare")
    call = (unshare or "", "--user", "--map-current-user", "--net", "--")
    if unshare and not subprocess.run([*call, "true"], capture_output=True, check=False).returncode:  # noqa: S603
        return call
    return ()


_OPTIONS: Mapping[str, Mapping[str, object]] = {
    "/org.openoffice.Office.Common/Security/Scripting": {
        "MacroSecurityLevel": 3,
        "DisableMacrosExecution": "true",
        "BlockUntrustedRefererLinks": "true",
        "DisableActiveContent": "true",
    },
    "/org.openoffice.Office.Writer/Content/Update": {"Link": 0},
    "/org.openoffice.Office.Calc/Content/Update": {"Link": 1},
    "/org.openoffice.Inet/Settings": {
        "ooInetProxyType": 2,
        "ooInetHTTPProxyName": "127.0.0.1",
        "ooInetHTTPProxyPort": 9,
        "ooInetHTTPSProxyName": "127.0.0.1",
        "ooInetHTTPSProxyPort": 9,
    },
}
_PROFILE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<oor:items xmlns:oor="http://openoffice.org/2001/registry">'
    + "".join(
        f'<item oor:path="{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>'
        for path, options in _OPTIONS.items()
        for name, value in options.items()
    )
    + "</oor:items>\n"
)
