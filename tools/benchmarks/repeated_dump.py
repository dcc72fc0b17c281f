"""Write large dumps made of a small one: its pages again and again under new ids and titles."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ingest.sources.dumps.dump_file import read_blocks
from ingest.sources.dumps.page_xml import XmlExport, parse_head, parse_site, parse_text

_TITLE = re.compile(rb"(<title>[^<]*)(</title>)")
_TARGET = re.compile(rb"(<redirect title=\"[^\"]*)(\")")
_ID = re.compile(rb"<id>(\d+)</id>")
_TEXT = re.compile(rb"(<text[^>]*>#[^<]*?\[\[[^\]|#]*)([\]|#])")


@dataclass(frozen=True)
class MadeDump:
    """A dump that was written: its articles, and the bytes of their wikitext."""

    path: Path
    articles: int
    wikitext: int


def write_dump(source: Path, target: Path, megabytes: int) -> MadeDump:
    """Write the pages of `source` to `target`, uncompressed, as often as makes that many megabytes of XML."""
    xml = b"".join(read_blocks(source))
    header = xml[: xml.find(b"<page>")]
    about = parse_site(header)
    pages = [page.xml for page in XmlExport([xml]).pages()]
    articles = [
        page for page in pages if (found := parse_head(page, about)) and found.namespace == 0 and found.redirect is None
    ]
    copies = max(1, round(megabytes * 1e6 / len(xml)))
    with target.open("wb") as file:
        file.write(header)
        for page in _rename_pages(pages, copies):
            file.write(page + b"\n")
        file.write(b"</mediawiki>\n")
    wikitext = sum(len(parse_text(page).wikitext.encode()) for page in articles)
    return MadeDump(target, copies * len(articles), copies * wikitext)


def _rename_pages(pages: list[bytes], copies: int) -> Iterator[bytes]:
    numbers = count(1)
    for copy in range(copies):
        mark = b" (%d)" % copy if copy else b""
        for page in pages:
            renamed = _TEXT.sub(
                rb"\1%b\2" % mark, _TARGET.sub(rb"\1%b\2" % mark, _TITLE.sub(rb"\1%b\2" % mark, page, 1)), 1
            )
            yield _ID.sub(b"<id>%d</id>" % next(numbers), renamed, 1)
