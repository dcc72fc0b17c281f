"""Define the error of settings that cannot be used; `settings_errors` explains each error."""

from collections.abc import Sequence


class SettingsError(Exception):
    """The settings cannot be used. `str()` is one plain line that says where the error is; `hint` says what to do."""

    kind = "settings"

    def __init__(self, message: str, *, hint: str = "", others: "Sequence[SettingsError]" = ()) -> None:
        super().__init__(message)
        self.hint = hint
        self.others = tuple(others)
        """The other errors of the same settings."""


def join_errors(errors: Sequence[SettingsError]) -> SettingsError:
    """Return one error that reports all these errors."""
    if len(errors) == 1:
        return errors[0]
    first, *others = errors
    return SettingsError(str(first), hint=first.hint, others=others)
