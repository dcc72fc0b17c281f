"""Compile regular expressions at first use: some 350 compiled at import would cost each command a third of a second."""

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """Stands for a `re.Pattern`, and hands its attributes on."""

    def __init__(self, source: str | bytes, flags: int = 0) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._source, self._flags), name)
        self.__dict__[name] = found  # from now on it is found without this detour
        return found


def lazy_compile(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when it is first used; an error in it is raised then."""
    return cast("re.Pattern[AnyStr]", LazyPattern(source, flags))
