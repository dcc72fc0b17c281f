"""Plan the changes of `footnote setup`, and write them. Each file is written completely or not at all."""

import difflib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bot.cli.setup.setup_choices import SetupChoices, edit_settings, edit_variables, list_variables
from bot.settings.settings_errors import explain_write_error
from bot.settings.settings_reader import load_settings, locate_variables
from bot.settings.tables.settings_tables import Settings
from storage.errors import explain_folder_error

_OWN = 0o600
_PUBLIC = 0o644


@dataclass(frozen=True, slots=True)
class SetupPlan:
    path: Path
    before: str
    text: str  # of the settings
    variables: tuple[str, ...]
    variables_text: str  # of the file of variables
    makes_key: bool
    corpora: tuple[str, ...]  # to ingest

    @property
    def writes(self) -> bool:
        return self.text != self.before or bool(self.variables) or self.makes_key

    def describe(self) -> list[str]:
        lines = []
        if self.corpora:
            lines.append(f"{' and '.join(self.corpora)}: ingested, and a first question asked.")
        if self.makes_key:
            lines.append("footnote-record.key: created; it signs the record of all answers.")
        if self.variables:
            file = locate_variables(self.path)
            lines.append(f"{file}: gets {' and '.join(self.variables)}; only you may read it.")
        if self.text != self.before:
            lines.append(f"{self.path}: {'changed' if self.before else 'written'}, with")
        return lines

    def list_changes(self) -> list[str]:
        """List the added and removed lines of the settings."""
        lines = difflib.unified_diff(self.before.splitlines(), self.text.splitlines(), n=0, lineterm="")
        shown = [line for line in lines if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]
        settings = [line for line in shown if line[1:].strip() and not line[1:].startswith("#")]
        return [f"{line[0]} {line[1:]}" for line in settings] if self.before else [line[1:] for line in settings]


def build_plan(path: Path, choices: SetupChoices, settings: Settings) -> SetupPlan:
    """Compare the current files with the choices. Raises `SettingsError`."""
    text = _read(path)
    variables = list_variables(choices)
    variables_text = _read(locate_variables(path))
    return SetupPlan(
        path,
        text,
        edit_settings(text, choices, settings),
        tuple(variables),
        edit_variables(variables_text, variables) if variables else variables_text,
        not settings.record.key_path.exists(),
        tuple(folder.corpus for folder in choices.folders),
    )


def require_writable(path: Path, home: Path) -> None:
    """Check that settings and home can be written. Raises `SettingsError` or `HomeUnusable`."""
    try:
        _try_writing(path.parent)
    except OSError as error:
        raise explain_write_error(error, path) from error
    try:
        _try_writing(home)
    except OSError as error:
        raise explain_folder_error(error, home) from error


def _try_writing(folder: Path) -> None:
    """Write a temporary file into a folder, or into its nearest existing parent."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    with tempfile.TemporaryFile(dir=existing) as file:
        file.write(b"?")


def write_plan(plan: SetupPlan) -> None:
    """Write the files. Raises `SettingsError` if the new settings are invalid; then nothing is changed."""
    written = dict[Path, Path]()  # drafts, by the file that each replaces
    try:
        if plan.text != plan.before:
            mode = plan.path.stat().st_mode if plan.path.exists() else _PUBLIC
            written[plan.path] = _draft(plan.path, plan.text, mode)
            load_settings(written[plan.path])
        if plan.variables:
            variables = locate_variables(plan.path)
            written[variables] = _draft(variables, plan.variables_text, _OWN)
        for path, draft in written.items():
            draft.replace(path)
    finally:
        for draft in written.values():
            draft.unlink(missing_ok=True)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig") if path.exists() else ""


def _draft(path: Path, text: str, mode: int) -> Path:
    """Write a text into a new file next to another one, and return the new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(name).chmod(mode)
    return Path(name)
