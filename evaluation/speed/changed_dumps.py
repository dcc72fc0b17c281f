"""A dump as it may be a night later: of its articles a share is edited, added, deleted or renamed."""

import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

from evaluation.errors import EvaluationError
from ingest.sources.dumps.file import blocks
from ingest.sources.dumps.mediawiki_xml import Export
from ingest.sources.mediawiki.page import head, site

_TITLE = re.compile(rb"(<title>)([^<]*)(</title>)")
_PAGE_ID = re.compile(rb"<id>(\d+)</id>")
_REVISION = re.compile(rb"(<revision>\s*<id>)(\d+)(</id>)")
_TEXT_END = re.compile(rb"</text>")
_NEW_IDS = 900_000_000
_KINDS = ("edited", "added", "deleted", "renamed")


@dataclass(frozen=True)
class Changes:
    """The keys of the articles that were changed, by kind."""

    edited: frozenset[str]
    added: frozenset[str]
    deleted: frozenset[str]
    renamed: frozenset[str]

    @property
    def count(self) -> int:
        """How many articles are concerned."""
        return sum(len(getattr(self, kind)) for kind in _KINDS)


def change_dump(source: Path, target: Path, share: float, random: Random) -> Changes:
    """Write `source` to `target`, uncompressed, with so many of its articles changed, a fourth in each way."""
    xml = b"".join(blocks(source))
    header = xml[: xml.find(b"<page>")]
    about = site(header)
    pages = [page.xml for page in Export([xml]).pages()]
    heads = [head(page, about) for page in pages]
    articles = [at for at, found in enumerate(heads) if found and found.namespace == 0 and found.redirect is None]
    each = max(1, round(len(articles) * share / len(_KINDS)))
    if each * len(_KINDS) > len(articles):
        raise EvaluationError(f"{source} holds {len(articles)} articles, too few to change {each} in each way.")
    chosen = random.sample(articles, each * len(_KINDS))
    kind_of = {at: _KINDS[number // each] for number, at in enumerate(chosen)}
    keys: dict[str, set[str]] = {kind: set() for kind in _KINDS}
    with target.open("wb") as file:
        file.write(header)
        for at, page in enumerate(pages):
            kind, found = kind_of.get(at, ""), heads[at]
            new, key = _changed(page, kind, _NEW_IDS + at)
            file.write(new + b"\n")
            if kind and found:
                keys[kind].add(key or found.key)
        file.write(b"</mediawiki>\n")
    return Changes(**{kind: frozenset(found) for kind, found in keys.items()})


def _changed(page: bytes, kind: str, number: int) -> tuple[bytes, str]:
    """Return what stands in the page's place, and the key of what is new."""
    revised = _REVISION.sub(rb"\g<1>%d\g<3>" % number, page, count=1)
    if kind == "edited":
        return _TEXT_END.sub(b"\n\nA sentence that was written last night, by hand %d.</text>" % number, revised, 1), ""
    if kind == "deleted":
        return b"", ""
    if kind == "renamed":
        return _TITLE.sub(rb"\1\2 (renamed)\3", revised, count=1), ""
    if kind == "added":
        copied = _PAGE_ID.sub(b"<id>%d</id>" % number, _TITLE.sub(rb"\1\2 (added)\3", revised, count=1), count=1)
        return page + b"\n" + copied, str(number)
    return page, ""
