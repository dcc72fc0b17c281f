"""Try what was answered in `footnote setup`, by the doctor's own checks. Each try blocks."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from bot.cli.setup.platform_interview import PlatformTries
from bot.cli.setup.setup_choices import FolderCount, ModelChoice, count_files
from bot.doctor.checks.server_checks import check_model
from bot.doctor.diagnosis import CheckResult, Inspection, OpenModel, report_error, run_checks
from bot.server.refresh.source_factory import build_folder
from bot.settings.platform_registry import PlatformEntry, PlatformSettings
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import FolderSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SetupTries:
    """What answers are tried with."""

    settings: Settings
    open_model: OpenModel

    def count_folder(self, path: Path) -> FolderCount:
        """Count what a folder holds. Raises `FolderError`."""
        source = FolderSettings.model_validate({"type": "folder", "path": path})
        return count_files(build_folder(source, self.settings.ingest.programs).preview())

    @property
    def platforms(self) -> PlatformTries:
        return PlatformTries(
            _try_answer,
            lambda entry, table: _run(lambda: entry.setup.locate_bot(table)),
            lambda entry, table, workspace: _run(lambda: entry.setup.list_channels(table, workspace)),
        )

    def try_model(self, choice: ModelChoice) -> Sequence[CheckResult]:
        scene = Inspection(apply_model(self.settings, choice), datetime.now(UTC), self.open_model)
        return _run(lambda: run_checks((check_model,), scene))


def _try_answer(entry: PlatformEntry, table: PlatformSettings, key: str) -> Sequence[CheckResult]:
    try:
        return _run(lambda: entry.setup.try_answer(table, key))
    except Exception as error:  # noqa: BLE001 - whatever the platform's library raises is a finding
        return report_error(error)


def apply_model(settings: Settings, choice: ModelChoice) -> Settings:
    """Return the settings with a model that was chosen; what it leaves open is taken from the environment."""
    given = {"name": choice.name, "base_url": choice.base_url, "api_key": choice.api_key}
    values = ModelValues.model_validate({key: value for key, value in given.items() if value})
    return settings.model_copy(update={"model": values.completed(os.environ)})


def _run(work: Callable[[], Awaitable[T]]) -> T:
    async def run() -> T:
        return await work()

    return asyncio.run(run())
