"""The version of the code that runs, as the record and `footnote --version` name it."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("footnote")
    except PackageNotFoundError:
        return "unknown"


VERSION = _installed()
