"""`footnote init`: the settings file to begin with."""

from importlib import resources
from pathlib import Path

import typer
from rich.text import Text

from bot.commands.frame import AsJson, invocation_of, speaking
from bot.printing import documents
from bot.settings import FILE_NAME, SettingsError


def init(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Write a footnote.toml with every setting, explained and at its default."""
    with speaking(context, as_json=as_json) as output:
        path = write_starter(invocation_of(context).config or FILE_NAME)
        said = f"{path} is written: every setting, explained.\nNext: footnote ingest folder PATH --corpus NAME"
        output.give(documents.written(str(path)), Text(said))


def write_starter(path: Path) -> Path:
    """Write the settings file to begin with, and return where.

    Raises:
        SettingsError: there is a file already; it is left as it is.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(resources.files("bot").joinpath("starter.toml").read_text(encoding="utf-8"))
    except FileExistsError as error:
        hint = "Edit it, or move it away to get a new one."
        raise SettingsError(f"{path} is already there, and was left as it is.", hint=hint) from error
    return path
