"""What `footnote setup` is going to write, and the writing of it: each file whole, or not at all."""

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
    """What is going to be written and done."""

    path: Path
    before: str
    text: str  # of the settings
    variables: tuple[str, ...]
    variables_text: str  # of the file of variables
    makes_key: bool
    corpora: tuple[str, ...]  # to read in

    @property
    def writes(self) -> bool:
        return self.text != self.before or bool(self.variables) or self.makes_key

    def describe(self) -> list[str]:
        found = []
        if self.corpora:
            found.append(f"{' and '.join(self.corpora)}: read in, and a first question asked.")
        if self.makes_key:
            found.append("footnote-record.key: made; it signs the record of all answers.")
        if self.variables:
            file = locate_variables(self.path)
            found.append(f"{file}: gets {' and '.join(self.variables)}; only you may read it.")
        if self.text != self.before:
            found.append(f"{self.path}: {'changed' if self.before else 'written'}, with")
        return found

    def list_changes(self) -> list[str]:
        """List the lines that the settings get and lose."""
        lines = difflib.unified_diff(self.before.splitlines(), self.text.splitlines(), n=0, lineterm="")
        shown = [line for line in lines if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]
        told = [line for line in shown if line[1:].strip() and not line[1:].startswith("#")]
        return [f"{line[0]} {line[1:]}" for line in told] if self.before else [line[1:] for line in told]


def build_plan(path: Path, choices: SetupChoices, settings: Settings) -> SetupPlan:
    """Read what is there, and work out what follows from the choices. Raises `SettingsError`."""
    text, variables, beside = _read(path), list_variables(choices), _read(locate_variables(path))
    return SetupPlan(
        path,
        text,
        edit_settings(text, choices, settings),
        tuple(variables),
        edit_variables(beside, variables) if variables else beside,
        not settings.record.key_path.exists(),
        tuple(folder.corpus for folder in choices.folders),
    )


def require_writable(path: Path, home: Path) -> None:
    """Try whether settings and home can be written. Raises `SettingsError` or `HomeUnusable`."""
    try:
        _try_writing(path.parent)
    except OSError as error:
        raise explain_write_error(error, path) from error
    try:
        _try_writing(home)
    except OSError as error:
        raise explain_folder_error(error, home) from error


def _try_writing(folder: Path) -> None:
    """Write a file into a folder, or into that in which it is going to be made."""
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(b"?")


def write_plan(plan: SetupPlan) -> None:
    """Write the files. Raises `SettingsError` where the settings could not be read so; then all stays as it is."""
    written = dict[Path, Path]()  # what is written, by where it goes
    try:
        if plan.text != plan.before:
            mode = plan.path.stat().st_mode if plan.path.exists() else _PUBLIC
            written[plan.path] = _draft(plan.path, plan.text, mode)
            load_settings(written[plan.path])
        if plan.variables:
            beside = locate_variables(plan.path)
            written[beside] = _draft(beside, plan.variables_text, _OWN)
        for path, draft in written.items():
            draft.replace(path)
    finally:
        for draft in written.values():
            draft.unlink(missing_ok=True)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig") if path.exists() else ""


def _draft(path: Path, text: str, mode: int) -> Path:
    """Write a text into a file beside another one, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(name).chmod(mode)
    return Path(name)
