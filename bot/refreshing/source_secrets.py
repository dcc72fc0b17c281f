"""What lets a source in: settings name the variable that holds it, or a file by `_FILE` at its end.

It is looked up when the source is opened, so that it stands neither in the settings nor in what other processes are
sent.
"""

from collections.abc import Mapping
from pathlib import Path

from bot.settings import SettingsError


def secret(name: str, environment: Mapping[str, str]) -> str:
    """Return what the variable of this name holds, or the file that `NAME_FILE` names; empty where `name` is.

    Raises `SettingsError` where there is neither, or the file cannot be read. What is held is in no message.
    """
    if not name:
        return ""
    if held := environment.get(name, "").strip():
        return held
    path = environment.get(f"{name}_FILE", "")
    if not path:
        raise SettingsError(f"{name}, which a source names, is not set.", hint=f"Set {name}, or {name}_FILE.")
    try:
        held = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8 text"
        raise SettingsError(
            f"The file that {name}_FILE names cannot be read: {reason}.", hint="Mend the path, or what may be read."
        ) from error
    if not held:
        raise SettingsError(f"The file that {name}_FILE names is empty.", hint="Write the secret into it.")
    return held
