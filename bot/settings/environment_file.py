"""Read `footnote.env`, the variables beside the settings file: where `footnote setup` puts secrets."""

import stat
from collections.abc import Mapping, MutableMapping
from pathlib import Path

NAME = "footnote.env"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def locate_variables(config: Path | None) -> Path:
    return (config.parent if config else Path()) / NAME


def read_variables(path: Path) -> Mapping[str, str]:
    """Return the variables of a file; none where there is no file. Raises `SettingsError` where it cannot be read."""
    if not path.exists():
        return {}
    from dotenv import dotenv_values

    try:
        return {name: value for name, value in dotenv_values(path, interpolate=False).items() if value}
    except (OSError, UnicodeDecodeError) as error:
        from bot.settings.errors import SettingsError

        reason = getattr(error, "strerror", "") or "it is not UTF-8 text"
        raise SettingsError(f"{path} cannot be read: {reason}.", hint="Let the user read it that runs this.") from error


def adopt_variables(path: Path, environment: MutableMapping[str, str]) -> None:
    """Set the file's variables where the environment leaves them open. Raises as `read_variables` does."""
    for name, value in read_variables(path).items():
        if not environment.get(name):
            environment[name] = value


def is_exposed(path: Path) -> bool:
    """Return whether other users of this machine may open the file."""
    return path.exists() and bool(path.stat().st_mode & _OTHERS)
