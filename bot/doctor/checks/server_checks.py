"""Check the sources, git, the model's server, the search engine, and the port of our own server."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from bot.doctor.diagnosis import CheckResult, Inspection
from bot.server.refresh.source_factory import open_source
from bot.settings.tables.source_settings import GitSettings, SourceContext, SourceSettings
from bot.views.error_messages import explain_error
from bot.views.text_formats import format_count
from bot.wiring import open_web_search
from ingest.sources.git import git_program
from ingest.types import SourceUnavailable
from pipeline.errors import ModelRefused
from pipeline.llm.model import Budget, BudgetMeter, ChatMessage, ModelCall
from pipeline.llm.model_client import validate_settings
from pipeline.llm.model_settings import ModelSettings

_MOUNT_HINT = "Correct the path in footnote.toml, or mount the missing volume; documents that were read stay indexed."


async def check_sources(scene: Inspection) -> Sequence[CheckResult]:
    """Check that each source can be opened here: its folder or file exists, its secrets are set."""
    return await asyncio.to_thread(
        examine_sources,
        scene.settings.sources,
        SourceContext(scene.settings.home, os.environ, programs=scene.settings.ingest.programs),
    )


def examine_sources(sources: Mapping[str, SourceSettings], context: SourceContext) -> tuple[CheckResult, ...]:
    """Return a failure for each source that cannot be opened; if all can be, a result that lists them. Blocks."""
    faults = tuple(
        fault for corpus, source in sources.items() if (fault := _find_source_fault(corpus, source, context))
    )
    if faults or not sources:
        return faults
    kinds = ", ".join(f"{corpus} ({source.type.replace('_', ' ')})" for corpus, source in sources.items())
    remote = [corpus for corpus, source in sources.items() if not any(isinstance(value, Path) for _, value in source)]
    message = f"Sources: the servers of {', '.join(remote)} were not contacted; `footnote ingest all` contacts them."
    unchecked = [CheckResult("skip", message)] if remote else []
    return (CheckResult("ok", f"Sources: {format_count(len(sources), 'source')} can be opened: {kinds}."), *unchecked)


def _find_source_fault(corpus: str, source: SourceSettings, context: SourceContext) -> CheckResult | None:
    for path in (value for _, value in source if isinstance(value, Path)):
        if not path.exists():
            return CheckResult("fail", f"Sources: {corpus} is read from {path}, which does not exist.", _MOUNT_HINT)
        if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
            hint = "Make it readable by the user running Footnote."
            return CheckResult("fail", f"Sources: {corpus} is read from {path}, which cannot be read.", hint)
    try:
        open_source(source, context)
    except Exception as error:  # noqa: BLE001 - any error of opening a source is a finding
        fault = explain_error(error)
        return CheckResult("fail", f"Sources: {corpus}: {fault.message}", fault.hint)
    return None


_GIT_SECONDS = 10.0


async def check_git(scene: Inspection) -> Sequence[CheckResult]:
    """Check that git is installed and new enough, if a corpus is read from a repository."""
    named = [name for name, source in scene.settings.sources.items() if isinstance(source, GitSettings)]
    if not named:
        return ()
    return (await asyncio.to_thread(_check_git_version, shutil.which("git"), ", ".join(named)),)


def _check_git_version(path: str | None, named: str) -> CheckResult:
    try:
        if path is None:
            raise git_program.make_git_missing()
        version = subprocess.run(  # noqa: S603 - the program that `which` found
            [path, "--version"], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False, cwd=Path(os.sep)
        ).stdout
        git_program.refuse_old_git(version)
    except SourceUnavailable as error:
        return CheckResult("fail", f"Git: {error}", error.hint)
    return CheckResult("ok", f"Git: {version.strip()} reads {named}.")


MODEL_SECONDS = 15.0
_PROBE_QUERY = "encyclopedia"
_PROBE_TOKENS = 16
_PROBE = ModelCall("query", (ChatMessage("user", "Say yes."),), max_tokens=_PROBE_TOKENS)


async def check_model(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the configured model replies. A model is optional."""
    values = scene.settings.model
    if not values.configured:
        return (CheckResult("ok", "Model: none; answers are quoted from the documents."),)
    plain = _with_short_timeouts(values.plain())
    validate_settings(plain)
    async with scene.open_model(plain) as llm:
        with suppress(ModelRefused):  # a refusal is a reply, too
            await llm.complete(_PROBE, BudgetMeter(Budget()))
    message = f"Model: {values.names} at {plain.server} replies; `footnote doctor --model` measures how well."
    return (CheckResult("ok", message),)


async def check_search_engine(scene: Inspection) -> Sequence[CheckResult]:
    """Check that the configured search engine finds a page. An engine is optional."""
    web = open_web_search(scene.settings.search_engine)
    if web is None:
        return ()
    with web:
        results = await web.find(_PROBE_QUERY, 1)
    name = f"Search engine: {scene.settings.search_engine.type}"
    if not results:
        return (CheckResult("warn", f"{name} finds nothing.", "Check that the engines it uses respond."),)
    return (CheckResult("ok", f"{name} responds; its pages are the corpus {web.corpus}."),)


async def check_port(scene: Inspection) -> Sequence[CheckResult]:
    """Check that our server can listen at its address."""
    host, number = scene.settings.http.host, scene.settings.http.port
    place = f"{host}:{number}"
    if scene.serving:
        return (CheckResult("ok", f"Port: the running server listens at {place}."),)
    try:
        await asyncio.to_thread(_try_port, host, number)
    except OSError as error:
        hint = "Stop the program that listens there, or set another host or port under [http]."
        return (CheckResult("fail", f"Port: cannot listen at {place}: {error.strerror or error}.", hint),)
    return (CheckResult("ok", f"Port: {place} is free."),)


def _with_short_timeouts(settings: ModelSettings) -> ModelSettings:
    seconds = {name: min(MODEL_SECONDS, getattr(settings, name)) for name in ("timeout_seconds", "first_token_seconds")}
    return replace(settings, retries=0, **seconds)


def _try_port(host: str, number: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
    with closing(socket.socket(family, kind, protocol)) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tried.bind(address)
        tried.listen()
