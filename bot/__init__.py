"""The bot: platforms, command line, terminal, settings, and the composition root."""

from importlib.metadata import PackageNotFoundError, version


def _installed_version() -> str:
    try:
        return version("footnote")
    except PackageNotFoundError:
        return "unknown"


VERSION = _installed_version()
"""The version of the code that runs."""
