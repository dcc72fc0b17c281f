"""The bot: platforms, command line, terminal, settings, and the composition root."""

from functools import cache


@cache
def read_version() -> str:
    """Return the version of the running code, as the record and `footnote --version` show it."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms that most who import this package do without

    try:
        return version("footnote")
    except PackageNotFoundError:
        return "unknown"
