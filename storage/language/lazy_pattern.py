"""Compile regular expressions at first use: some 350 compiled at import would cost each command a third of a second."""

import re
from typing import Any, AnyStr, cast

_known: list["LazyPattern"] = []


class LazyPattern:
    """Stands for a `re.Pattern`, and hands its attributes on."""

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
    """Return a pattern that is compiled when it is first used; an error in it is raised then."""
    return cast("re.Pattern[AnyStr]", LazyPattern(source, flags))


def compile_all() -> None:
    """Compile the patterns of all loaded modules, so that no later work waits for that."""
    for pattern in tuple(_known):
        pattern.load()
