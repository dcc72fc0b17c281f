"""Run `footnote init`: write the starter file, and make the key that signs the record."""

from importlib import resources
from pathlib import Path

import typer

from bot.cli.command_context import JsonOption, find_cli_state, open_bare_command
from bot.cli.terminal_output import build_document
from bot.settings.errors import SettingsError
from bot.settings.platform_registry import load_platforms
from bot.settings.settings_errors import explain_write_error
from bot.settings.settings_reader import load_settings
from bot.settings.tables.settings_tables import FILE_NAME
from bot.views.text_layout import Text
from storage.record.proof.signed_notes import create_key, load_key


def init(context: typer.Context, *, as_json: JsonOption = False) -> None:
    with open_bare_command(context, as_json=as_json) as output:
        path = write_starter(find_cli_state(context).config or FILE_NAME)
        public = ensure_record_key(path)
        lines = (
            f"{path} is written: every setting, explained.",
            f"The record is signed by this key; note it elsewhere: {public}",
            "Next: footnote ingest folder PATH --corpus NAME",
        )
        output.give(build_document(path=str(path), key=public), Text("\n".join(lines)))


def ensure_record_key(settings_file: Path) -> str:
    """Create the key that signs the record unless it exists, and return the public key."""
    file = load_settings(settings_file).record.key_path
    return str((load_key(file) if file.exists() else create_key(file)).public)


def write_starter(path: Path) -> Path:
    """Write the starter file, and return its path.

    Raises `SettingsError` if the file exists, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_read_starter())
    except FileExistsError as error:
        hint = "Edit it, or move it away to get a new one."
        raise SettingsError(f"{path} already exists, and was not changed.", hint=hint) from error
    except OSError as error:
        raise explain_write_error(error, path) from error
    return path


def _read_starter() -> str:
    """Return the text of the starter file, which includes each platform's own text about its table."""
    text = resources.files("bot.settings").joinpath("starter.toml").read_text(encoding="utf-8")
    folders = (resources.files(entry.settings.__module__) for entry in load_platforms().values())
    tables = [file.read_text(encoding="utf-8") for folder in folders if (file := folder / "starter.toml").is_file()]
    return text.replace("# PLATFORMS\n", "\n".join(tables))
