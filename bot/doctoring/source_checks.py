"""Checks of what the sources of corpora need of this machine."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bot.doctoring.checks import Finding, Scene
from bot.settings_of.git import GitSettings
from ingest.sources.git import program as git_program
from ingest.types import SourceUnavailable

_SECONDS = 10.0


async def git(scene: Scene) -> Sequence[Finding]:
    """Whether there is a git program, and one that is new enough, where a corpus is read from a repository."""
    named = [name for name, source in scene.settings.sources.items() if isinstance(source, GitSettings)]
    if not named:
        return ()
    return (await asyncio.to_thread(_program, shutil.which("git"), ", ".join(named)),)


def _program(path: str | None, named: str) -> Finding:
    try:
        if path is None:
            raise git_program.missing()
        said = subprocess.run(  # noqa: S603 - the program that `which` found
            [path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=Path(os.sep)
        ).stdout
        git_program.refuse_old(said)
    except SourceUnavailable as error:
        return Finding("fail", f"Git: {error}", error.hint)
    return Finding("ok", f"Git: {said.strip()} reads {named}.")
