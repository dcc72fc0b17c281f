"""The bot: platforms, the desk, answering, the server, the command line, the pages, and the composition root."""

from functools import cache


@cache
def read_version() -> str:
    """Return the version of the running code, as the record and `footnote --version` show it."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms that most who import this package do without

    try:
        return version("footnote")
    except PackageNotFoundError:
        return "unknown"
