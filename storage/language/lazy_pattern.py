"""Compile regular expressions at first use: compiling all 350 would delay each command by a third of a second."""

import re
from typing import Any, AnyStr, cast

_known: list["LazyPattern"] = []


class LazyPattern:
    """Stands in for a `re.Pattern`, which it compiles when an attribute is first used."""

    def __init__(self, source: str | bytes, flags: int = 0) -> None:
        self._source, self._flags = source, flags
        self._compiled: re.Pattern[Any] | None = None
        _known.append(self)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.load(), name)
        self.__dict__[name] = method  # later lookups bypass this method
        return method

    def load(self) -> re.Pattern[Any]:
        self._compiled = self._compiled or re.compile(self._source, self._flags)
        return self._compiled


def lazy_compile(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled at its first use. An error in it is raised only then."""
    return cast("re.Pattern[AnyStr]", LazyPattern(source, flags))


def compile_all() -> None:
    """Compile the patterns of all loaded modules now, so that later work need not wait for it."""
    for pattern in tuple(_known):
        pattern.load()
