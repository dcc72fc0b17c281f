"""Look for what infoboxes say in the passages of their pages; boxes are read here by patterns of its own.

Every argument of a box that stands on one line with a plain value is a fact: no template in it, no file, no colour, no
size of a picture. Citations, pictures and boxes of links are no boxes.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ingest.chunking import split_page
from ingest.sources.dumps.dump_file import read_blocks
from ingest.sources.dumps.page_xml import XmlExport, parse_head, parse_text
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import ChangedDocument

_ARGUMENT = re.compile(r"^[ \t]*\|[ \t]*([^=|{}\[\]<>\n]{1,60}?)[ \t]*=[ \t]*(.{2,200}?)[ \t]*$", re.MULTILINE)
_LINK = re.compile(r"\[\[(?:[^\[\]|:]*\|)?([^\[\]|:]*)\]\]")
_TAG = re.compile(r"<ref[^>]*/>|<ref[^>]*>.*?</ref>|<!--.*?-->|</?(?:small|b|i|nowiki|center|span|big)[^>]*>|''+")
_BREAK = re.compile(r"<br[^>]*>")
_UNREADABLE = re.compile(r"[{}\[\]<>|]|https?:|&\w+;|\d\s*px|^#[0-9a-fA-F]{3,6}$|\.\w{3,4}$|[:;]\s*(?:\d+%|[a-z]+);?$")
_PICTURE = re.compile(
    r"\b(?:image|\w*caption|alt|map|logo|photo|flag|icon|width|size|\w*style|class|color|colour|\w*link|signature|coor\w*|lat\w*|"
    r"lon\w*|pushpin\w*|bild\w*|imagen|pie|légende|lien|légende|drapeau|blason|mapa|seal|footnote|bg\w+|charte)\b"
    r"|画像|그림|圖|图|تصویر|صورة|תמונה|כיתוב|atvaiga",
    re.IGNORECASE,
)
_NO_BOX = re.compile(
    r"\s*(?:cit|lien|ouvrage|article|literatur|internetq|nav|reflist|webarch|autres projets|"
    r"multiple im|mehrere bilder|galerie|gesprochener|photomontage|montaje|positionskarte|library resources)",
    re.IGNORECASE,
)
_SHOWN = re.compile(
    r"yes|no|none|left|right|center|inline|title|collapsed|y|n|ja|nein|oui|non|rechts|links|deaktiviert"
)
_FEWEST = 4
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class BoxFact:
    """One argument of a box: its page, its name and its value as a reader sees it."""

    key: str
    name: str
    value: str


def find_boxes(wikitext: str) -> Iterator[str]:
    """Yield the insides of templates that have some arguments on lines of their own, and no template around them."""
    depth = start = 0
    for match in re.finditer(r"\{\{|\}\}", wikitext):
        if match[0] == "{{":
            start = start if depth else match.end()
            depth += 1
        elif depth:
            depth -= 1
            body = wikitext[start : match.start()]
            if not depth and not _NO_BOX.match(body) and len(_ARGUMENT.findall(body)) >= _FEWEST:
                yield body


def read_box(key: str, body: str) -> Iterator[BoxFact]:
    """Yield the facts of a box. What stands in a template within it is blotted out."""
    flat = _TAG.sub("", _BREAK.sub(" ", body))
    while (less := re.sub(r"\{\{[^{}]*\}\}", "{", flat)) != flat:
        flat = less
    for name, written in _ARGUMENT.findall(flat):
        value = _LINK.sub(r"\1", written)
        plain = name.replace("_", " ").rstrip("0123456789 ")
        if not _UNREADABLE.search(value) and not _PICTURE.search(plain) and not _SHOWN.fullmatch(value.strip().lower()):
            yield BoxFact(key, name, value)


def is_said(fact: BoxFact, texts: list[str]) -> bool:
    """Tell whether a line of a passage holds the value, words compared."""
    sought = f" {' '.join(_WORD.findall(fact.value.casefold()))} "
    return any(sought in f" {' '.join(_WORD.findall(line.casefold()))} " for text in texts for line in text.split("\n"))


def compare(
    dumps: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False)],
    number: Annotated[int, typer.Option(help="How many facts, drawn by chance.")] = 200,
    seed: int = 0,
) -> None:
    """Print what share of a sample of box facts stands in passages, and those that do not."""
    facts: list[tuple[BoxFact, list[str]]] = []
    for path in dumps:
        export = XmlExport(read_blocks(path))
        items = WikipediaDump(path, processes=1).documents()
        pages = {item.key: item for item in items if isinstance(item, ChangedDocument)}
        for raw in export.pages():
            head = parse_head(raw.xml, export.site)
            if head and head.key in pages:
                boxes = find_boxes(parse_text(raw.xml).wikitext)
                texts = [passage.text for passage in split_page("w", head.key, pages[head.key].load())]
                facts += [(fact, texts) for body in boxes for fact in read_box(head.key, body)]
    drawn = random.Random(seed).sample(facts, min(number, len(facts)))
    missing = [fact for fact, texts in drawn if not is_said(fact, texts)]
    print(f"{len(drawn) - len(missing)} of {len(drawn)} facts of boxes stand in passages ({len(facts):,} there are)")
    for fact in missing:
        print(f"  {fact.key}: {fact.name} = {fact.value}")


if __name__ == "__main__":
    typer.run(compare)
