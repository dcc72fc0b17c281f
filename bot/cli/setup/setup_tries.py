"""Test the answers given in `footnote setup` with the doctor's own checks. Each test blocks."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from bot.cli.setup.setup_choices import FolderCount, ModelChoice, count_files
from bot.doctor.checks.server_checks import check_model
from bot.doctor.diagnosis import CheckResult, Inspection, OpenModel, report_error, run_checks
from bot.platforms.platform_setup import BotLocation
from bot.server.refresh.source_factory import build_folder
from bot.settings.platform_registry import PlatformEntry, PlatformSettings
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import FolderSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SetupTries:
    """The functions that test answers. `try_model` and `try_answer` return errors as results; the others raise them."""

    count_folder: Callable[[Path], FolderCount]
    try_model: Callable[[ModelChoice], Sequence[CheckResult]]
    try_answer: Callable[[PlatformEntry, PlatformSettings, str], Sequence[CheckResult]]
    locate_bot: Callable[[PlatformEntry, PlatformSettings], BotLocation]
    list_channels: Callable[[PlatformEntry, PlatformSettings, str], Mapping[str, str]]


def make_tries(settings: Settings, open_model: OpenModel) -> SetupTries:
    def count_folder(path: Path) -> FolderCount:
        source = FolderSettings.model_validate({"type": "folder", "path": path})
        return count_files(build_folder(source, settings.ingest.programs).preview())

    def try_model(choice: ModelChoice) -> Sequence[CheckResult]:
        inspection = Inspection(apply_model(settings, choice), datetime.now(UTC), open_model)
        return _run(run_checks((check_model,), inspection))

    def try_answer(entry: PlatformEntry, table: PlatformSettings, key: str) -> Sequence[CheckResult]:
        try:
            return _run(entry.setup.try_answer(table, key))
        except Exception as error:  # noqa: BLE001 - an error of the platform's library is a finding
            return report_error(error)

    return SetupTries(
        count_folder,
        try_model,
        try_answer,
        lambda entry, table: _run(entry.setup.locate_bot(table)),
        lambda entry, table, workspace: _run(entry.setup.list_channels(table, workspace)),
    )


def apply_model(settings: Settings, choice: ModelChoice) -> Settings:
    """Return the settings with the chosen model; empty values are taken from the environment."""
    values = ModelValues.model_validate({key: value for key, value in asdict(choice).items() if value})
    return settings.model_copy(update={"model": values.completed(os.environ)})


def _run(work: Awaitable[T]) -> T:
    async def run() -> T:
        return await work

    return asyncio.run(run())
