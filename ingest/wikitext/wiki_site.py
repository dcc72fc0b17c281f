"""Describe a wiki: its language, address and namespaces, and the names that its markup uses.

Names of templates, sections and namespaces in many languages are listed in files of this folder. This module also finds
the names of Wikimedia's databases, and recognizes disambiguation pages.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from urllib.parse import quote

from storage.language.lazy_pattern import lazy_compile


@cache
def load_names(name: str) -> Mapping[str, frozenset[str]]:
    """Return the names in the list `name`, grouped by their kind."""
    kinds: dict[str, set[str]] = {}
    for line in files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines():
        kind, colon, written = line.partition(": ")
        if colon and not line.startswith("#"):
            kinds.setdefault(kind, set()).update(written.split(" | "))
    return MappingProxyType({kind: frozenset(names) for kind, names in kinds.items()})


@cache
def load_meanings(name: str) -> Mapping[str, str]:
    """Return the kind of each name in the list `name`, such as the country of a code, or the handler of a template."""
    return MappingProxyType({written: kind for kind, names in load_names(name).items() for written in names})


def load_other_names(kind: str) -> frozenset[str]:
    """Return the names of one kind in the list `other_names`, such as titles of appendix sections."""
    return load_names("other_names")[kind]


_PROJECTS = {
    "wiki": "wikipedia", "wiktionary": "wiktionary", "wikibooks": "wikibooks", "wikinews": "wikinews",
    "wikiquote": "wikiquote", "wikisource": "wikisource", "wikiversity": "wikiversity", "wikivoyage": "wikivoyage",
}  # fmt: skip
_WIKIMEDIA_WIKIS = frozenset({"commons", "meta", "species", "incubator", "wikimania"})  # below wikimedia.org
_DATABASE_NAME = lazy_compile(r"[a-z][a-z0-9_]{0,60}")
_DATABASE_PARTS = lazy_compile(rf"(?P<language>[a-z][a-z0-9_]*?)(?P<project>{'|'.join(_PROJECTS)})")


def resolve_database(name: str) -> str:
    """Return the full name of a wiki's database, for paths: `simplewiki` for `simple`. Raises `ValueError`."""
    plain = name.strip().lower().replace("-", "_")
    if not _DATABASE_NAME.fullmatch(plain):
        raise ValueError('must be the name of a wiki, such as "simple" or "simplewiki"')
    return plain if _DATABASE_PARTS.fullmatch(plain) else plain + "wiki"


@dataclass(frozen=True, slots=True)
class WikiSite:
    """A wiki, as the header of its dump or its API describes it."""

    name: str = ""  # its database: `enwiki`
    language: str = ""
    origin: str = ""  # `https://en.wikipedia.org`
    namespaces: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names by number, in lower case with underscores."""
    first_letter: bool = True  # whether all titles begin with a capital

    @property
    def hidden(self) -> frozenset[str]:
        """Return the names of namespaces such as files and categories, to which a link is not shown in the text."""
        return frozenset(name for number in _HIDDEN_NAMESPACES for name in self.namespaces.get(number, ()))

    def title(self, written: str) -> str:
        """Return the title of the page to which a link or redirect leads."""
        plain = " ".join(written.partition("#")[0].replace("_", " ").split()).lstrip(":")
        return plain[:1].upper() + plain[1:] if self.first_letter else plain

    def url(self, title: str, revision: str) -> str:
        """Return the address of a page, or of its `revision` if not empty; empty if the wiki's address is unknown."""
        if not self.origin:
            return ""
        named = quote(title.replace(" ", "_"), safe="/:(),!*'")
        return (
            f"{self.origin}/w/index.php?title={named}&oldid={revision}" if revision else f"{self.origin}/wiki/{named}"
        )


def describe_database(name: str) -> WikiSite:
    """Describe a wiki by the name of its database. Address and language are known only for Wikimedia's wikis."""
    parts = _DATABASE_PARTS.fullmatch(name)
    if not parts:
        return WikiSite(name)
    language = parts["language"].replace("_", "-")
    if language in _WIKIMEDIA_WIKIS:
        return WikiSite(name, origin=f"https://{language}.wikimedia.org")
    if name == "wikidatawiki":
        return WikiSite(name, origin="https://www.wikidata.org")
    spoken = "en" if language == "simple" else language.partition("-")[0]
    return WikiSite(name, language=spoken, origin=f"https://{language}.{_PROJECTS[parts['project']]}.org")


_LONGEST_DISAMBIGUATION = 60_000
"""Characters. A longer page that names such a template writes about it."""
_DISAMBIGUATION_TITLE = lazy_compile(
    r"[(（](?:disambiguation|Begriffsklärung|homonymie|desambiguación|disambigua|desambiguação|"
    r"doorverwijspagina|olika betydelser|ujednoznacznienie|значения|значення|曖昧さ回避|消歧义|消歧義|동음이의|توضيح|"
    r"ابهام‌زدایی|פירושונים|anlam ayrımı|razdvojba|вишезначна одредница|dezambiguizare|täsmennyssivu)[)）]$",
    re.IGNORECASE,
)

_TEMPLATE_NAME = lazy_compile(r"\{\{\s*+([^{}|\n]{2,60}+)\s*+[|}]")


def is_disambiguation(title: str, wikitext: str) -> bool:
    """Return whether a page is a disambiguation page, by a template, a magic word, or the end of its title."""
    if _DISAMBIGUATION_TITLE.search(title):
        return True
    if len(wikitext) > _LONGEST_DISAMBIGUATION:
        return False
    return "__DISAMBIG__" in wikitext or any(map(_is_disambiguation_template, set(_TEMPLATE_NAME.findall(wikitext))))


def _is_disambiguation_template(template: str) -> bool:
    name = template.strip().lower().replace("_", " ").removeprefix("template:")
    return name in load_other_names("disambiguation") or name.endswith("disambiguation")


_HIDDEN_NAMESPACES = (-2, 6, 14)  # the namespaces of media, files and categories
