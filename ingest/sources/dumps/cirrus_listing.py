"""Where a mirror of Wikimedia's dumps has those of CirrusSearch.

`/other/cirrus_search_index/DATE/index_name=WIKI_content/` holds `WIKI_content-DATE-00000.json.bz2` and so on, and
`_SUCCESS` once all are there. Until the end of 2025 it was `/other/cirrussearch/DATE/`, with one file a wiki, which
mirrors may still have. Neither tells checksums: sizes are asked for, and what is packed shows if it is damaged.
"""

import re
from functools import partial
from typing import TYPE_CHECKING

from ingest.sources.dumps.status import DumpFile, Edition, days, readable
from ingest.types import SourceUnavailable
from ingest.web.fetching import Web

if TYPE_CHECKING:
    from ingest.sources.dumps.mirror import Find

_OK = 200
_LOOKED_AT = 6


def content(mirror: str, wiki: str) -> "Find":
    """Return what finds the newest finished dump of the content of a wiki."""
    return partial(_latest, f"{mirror.rstrip('/')}/other", wiki)


def _latest(base: str, wiki: str, web: Web, since: str) -> Edition | None:
    reasons: list[str] = []
    for folder, look in (("cirrus_search_index", _in_parts), ("cirrussearch", _in_one)):
        reply = web.get(f"{base}/{folder}/")
        listed = days(reply.content.decode(errors="replace")) if reply.status == _OK else ()
        for day in [day for day in listed if day >= since][:_LOOKED_AT]:
            found = look(web, f"{base}/{folder}/{day}", wiki, day)
            if isinstance(found, Edition):
                return found
            reasons.append(f"{readable(day)}: {found}")
    if since:
        return None
    told = "; ".join(reasons) or "it lists none"
    raise SourceUnavailable(
        f"No CirrusSearch dump of {wiki} at {base} can be used: {told}.",
        hint="Check the name of the wiki, or leave out `cirrus` to read its articles from wikitext.",
    )


def _in_parts(web: Web, base: str, wiki: str, day: str) -> Edition | str:
    folder = f"{base}/index_name%3D{wiki}_content"
    reply = web.get(f"{folder}/")
    if reply.status != _OK:
        return f"it holds no {wiki}_content"
    page = reply.content.decode(errors="replace")
    if not re.search(r"href=[\"']?(?:\./)?_SUCCESS", page):
        return "it is still being written"
    names = sorted(set(re.findall(rf"{re.escape(wiki)}_content-{day}-\d{{5}}\.json\.(?:bz2|gz)", page)))
    return _sized(web, folder, day, names)


def _in_one(web: Web, base: str, wiki: str, day: str) -> Edition | str:
    reply = web.get(f"{base}/")
    page = reply.content.decode(errors="replace") if reply.status == _OK else ""
    name = f"{wiki}-{day}-cirrussearch-content.json.gz"
    return _sized(web, base, day, [name] if name in page else [])


def _sized(web: Web, folder: str, day: str, names: list[str]) -> Edition | str:
    """Return the dump with the sizes of its files, so that there can be looked at the disk first."""
    if not names:
        return "it has no files of this wiki"
    addresses = [(name, f"{folder}/{name}") for name in names]
    files = [DumpFile(name, address, web.size(address), None) for name, address in addresses]
    unsized = [file.name for file in files if file.size is None]
    return f"{unsized[0]} is not there" if unsized else Edition(day, tuple(files))
