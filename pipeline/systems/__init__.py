"""The registry of systems: each is one file in this folder, or one entry point of an installed package.

A file exports one `SystemEntry` as `ENTRY`. The system has the name of the file, with hyphens. Names are listed without
importing anything; a system is imported when it is first requested.
"""

import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from pipeline.errors import UnknownSystem

if TYPE_CHECKING:
    from pipeline.kit import System, SystemEntry

ENTRY_POINTS = "footnote.systems"  # the group under which an installed package names its `SystemEntry`
DEFAULT_SYSTEM = "wikichat-fast"  # the system if a model is configured and no system is set
DEFAULT_WITHOUT_MODEL = "extractive"


class SystemRegistry(Mapping[str, "SystemEntry"]):
    """Maps names to systems. A built-in system takes precedence over one of the same name in a package."""

    def __getitem__(self, name: str) -> "SystemEntry":
        module = name.replace("-", "_")
        if module in _list_modules():
            entry: SystemEntry = import_module(f"{__name__}.{module}").ENTRY
            return entry
        return _load_plugin(_find_plugins(tuple(sys.path))[name])

    def __iter__(self) -> Iterator[str]:
        ours = (module.replace("_", "-") for module in _list_modules())
        return iter(sorted({*ours, *_find_plugins(tuple(sys.path))}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


SYSTEMS = SystemRegistry()


def find_system(name: str, systems: "Mapping[str, SystemEntry]" = SYSTEMS) -> "SystemEntry":
    """Return a system's entry. Raises `UnknownSystem`, which lists the existing ones."""
    try:
        return systems[name]
    except KeyError:
        known = ", ".join(sorted(systems))
        raise UnknownSystem(f"There is no system “{name}”.", hint=f"There are: {known}.") from None


def find_check(entry: "SystemEntry") -> "System":
    """Return the system's check of a claim. By default, the model checks it if the system calls one; else rules do."""
    from pipeline.stages import claim_check  # late: listing names must not load what it imports

    return entry.check or (claim_check.check_claim_by_model if entry.calls else claim_check.check_claim_by_rules)


def find_text_check(entry: "SystemEntry") -> "System":
    """Return the system's check of each statement in a text, with the same defaults."""
    from pipeline.stages import claim_check

    return entry.check_text or (claim_check.check_text_by_model if entry.calls else claim_check.check_text_by_rules)


def _list_modules() -> set[str]:
    return {module.name for module in pkgutil.iter_modules(__path__)}


@cache
def _find_plugins(path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Return the plugins installed along `sys.path`. They are cached, as reading each package takes milliseconds."""
    del path  # the cache key: `entry_points` searches `sys.path`
    return {plugin.name: plugin for plugin in entry_points(group=ENTRY_POINTS)}


def _load_plugin(plugin: EntryPoint) -> "SystemEntry":
    from pipeline.kit import SystemEntry

    try:
        entry = plugin.load()
    except Exception as error:
        fault = f"The system “{plugin.name}” cannot be loaded from {plugin.value}: {type(error).__name__}: {error}."
        raise UnknownSystem(fault, hint="Fix or remove the package that brings it.") from error
    if not isinstance(entry, SystemEntry):
        raise UnknownSystem(f"{plugin.value} is not a SystemEntry.", hint="Fix or remove the package that brings it.")
    return entry
