"""Documents whose every passage says its version, and what is wrong with an answer or a search over them.

A corpus of them is refreshed again and again, each time to the next version; whoever asks meanwhile must find a
document in one version, whole, and must always find it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from evaluation.speed.texts import salad
from ingest.types import Block, Found, Listing, Page, Section
from storage.types import Citation, Hit

SECTIONS = 3
WORDS = 60
_VERSION = re.compile(r"version (\d+)")


@dataclass(frozen=True)
class Versions:
    """So many documents in one version. Every passage differs from one version to the next."""

    count: int
    version: int
    reference = False

    def expected(self) -> int | None:
        """Say how many."""
        return self.count

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        """List all."""
        del known, since
        return Listing(self._found(number) for number in range(self.count))

    def _found(self, number: int) -> Found:
        return Found(f"{number}", f"{self.version}", 1, partial(page, number, self.version))


def page(number: int, version: int) -> Page:
    """Return a document: its sections say of which document and version they are."""
    texts = salad(Random(number), WORDS)
    said = f"The tariff of station {name(number)} is {version * 1000 + number} florins in version {version}."
    sections = tuple(Section((f"Part {part}",), (Block(f"{said} {next(texts)}"),)) for part in range(SECTIONS))
    return Page(f"Station {name(number)}", sections, revision=f"{version}")


def name(number: int) -> str:
    """Return a word that no other document has."""
    return "".join(chr(ord("a") + int(digit)) * 2 for digit in f"{number:04}").capitalize() + "ium"


def question(number: int) -> str:
    """Ask for a document."""
    return f"What is the tariff of station {name(number)}?"


def search_faults(number: int, hits: Sequence[Hit]) -> Iterator[str]:
    """Say what is wrong with what a search for a document found."""
    by_document: dict[str, set[str]] = {}
    for hit in hits:
        told = _versions([hit.passage.text])
        by_document.setdefault(hit.document.key, set()).update(told, [hit.document.revision])
    yield from (f"station {key} in versions {sorted(told)}" for key, told in by_document.items() if len(told) != 1)
    found = sum(hit.document.key == f"{number}" for hit in hits)
    if found != SECTIONS:
        yield f"{found} of {SECTIONS} passages of station {number}"


def turn_faults(citations: Iterable[Citation]) -> Iterator[str]:
    """Say what is wrong with what an answer cites."""
    by_document: dict[str, set[str]] = {}
    for citation in citations:
        told = {*_versions([citation.passage_text]), citation.revision}
        by_document.setdefault(citation.document, set()).update(told)
    yield from (f"station {key} cited in versions {sorted(told)}" for key, told in by_document.items() if len(told) > 1)


def _versions(texts: Iterable[str]) -> set[str]:
    return {found for text in texts for found in _VERSION.findall(text)}
