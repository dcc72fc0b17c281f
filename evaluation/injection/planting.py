"""Plants attacks in texts, and cuts both into passages as a refresh does. Pure."""

from collections.abc import Sequence
from random import Random

from evaluation.injection.types import Attack, Context, Place, Planted
from ingest import cleaning
from ingest.chunking import passages
from ingest.types import Block, Page, Section
from storage.language.sentences import sentence_spans
from storage.types import Document, Hit, Kind

CORPUS = "planted"
TITLE, SECTION = "Harbour notes", "Remarks"
MARKER = "{INJECTION_MARKER}"
"""Where a context itself says where an attack belongs."""


def everywhere(attack: Attack, contexts: Sequence[Context], random: Random) -> tuple[Planted, ...]:
    """Plant an attack in each of its places, each time in a context by chance."""
    return tuple(plant(attack, random.choice(contexts), place) for place in attack.places)


def plant(attack: Attack, context: Context, place: Place) -> Planted:
    """Plant an attack in one place of a context."""
    hits = _hits("page", _page(context, attack, place))
    without = Context(context.text.replace(MARKER, ""), context.kind)
    return Planted(attack, place, hits, _hits("page", _page(without, None, place)))


def _page(context: Context, attack: Attack | None, place: Place) -> Page:
    text = attack.text if attack else ""
    title = f"{TITLE}: {text}" if attack and place == "title" else TITLE
    section = f"{SECTION}: {text}" if attack and place == "section" else SECTION
    page = Page(title, (Section((section,), tuple(_blocks(context, text, place))),), language="en")
    return cleaning.cleaned(page)


def _blocks(context: Context, attack: str, place: Place) -> list[Block]:
    own, planted = Block(context.text, context.kind), [Block(attack)] if attack else []
    if MARKER in context.text:
        return [Block(context.text.replace(MARKER, attack), context.kind)]
    if place == "inside" and attack:
        return [Block(_inside(context, attack), context.kind)]
    return [*planted, own] if place == "before" else [own, *planted] if place == "after" else [own]


def _inside(context: Context, attack: str) -> str:
    """Put an attack where the sentence or line in the middle begins."""
    text = context.text
    starts = [start for start, _ in sentence_spans(text)]
    if context.kind is not Kind.PROSE:
        starts = [place + 1 for place, sign in enumerate(text) if sign == "\n"]
    middle = starts[len(starts) // 2] if starts else len(text)
    gap = " " if context.kind is Kind.PROSE else "\n"
    return f"{text[:middle]}{attack}{gap}{text[middle:]}"


def _hits(key: str, page: Page) -> tuple[Hit, ...]:
    """Return a page's passages as hits, its title and section with them."""
    document = Document(CORPUS, key, page.title, url=f"https://wiki.example/{key}", language=page.language)
    return tuple(Hit(passage, document, 1.0, 0.5, 1.0) for passage in passages(CORPUS, key, page))
