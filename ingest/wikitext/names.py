"""Names kept as data beside this module: of templates, sections, namespaces; and the reader of such lists.

A list is a text file of lines `kind: name | name | ...`; a kind may have several lines, `#` opens a comment.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@cache
def listed(name: str) -> Mapping[str, frozenset[str]]:
    """The kinds of the list `name`, and the names of each."""
    found: dict[str, set[str]] = {}
    for line in files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines():
        kind, colon, written = line.partition(": ")
        if colon and not line.startswith("#"):
            found.setdefault(kind, set()).update(written.split(" | "))
    return MappingProxyType({kind: frozenset(names) for kind, names in found.items()})


@cache
def template_kinds() -> Mapping[str, str]:
    """How a template is read, by its name in lower case."""
    return MappingProxyType({name: kind for kind, names in listed("template_names").items() for name in names})


def appendices() -> frozenset[str]:
    """Titles of sections, in lower case, whose lists say nothing of the subject."""
    return listed("other_names")["appendix"]


def namespaces() -> frozenset[str]:
    """Names of the namespaces of files, media and categories."""
    return listed("other_names")["namespace"]


def redirecting() -> frozenset[str]:
    """What stands behind the `#` of a redirect."""
    return listed("other_names")["redirect"]


def disambiguations() -> frozenset[str]:
    """Templates of pages that only tell apart what shares its title."""
    return listed("other_names")["disambiguation"]
