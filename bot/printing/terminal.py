"""How an answer looks in a terminal: its text, then what it cites. Pure: values in, Rich renderables out.

Results that are lists of things are in `tables`; what programs read is in `documents`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.style import Style
from rich.table import Table
from rich.text import Text

from bot.sanitizing import linkable, one_line, safe
from bot.wording import left_out
from bot.words import say
from pipeline.types import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime, tzinfo

    from bot.turns import Answered
    from pipeline.types import AnsweredSentence
    from storage.types import Citation, Hit

WIDTH = 100
"""Wider lines are hard to read."""
MARK = "cyan"


def answer_view(done: Answered, *, language: str, zone: tzinfo) -> RenderableType:
    """Show an answer with its sources, or what there is instead; `language` is the question's."""
    beneath = _beneath(done, language, zone)
    return Constrain(Group(styled(done.text, done.answer.sentences), *beneath), WIDTH)


def beneath_view(done: Answered, *, language: str, zone: tzinfo) -> RenderableType:
    """Show what stands beneath an answer whose sentences were shown as they came."""
    return Constrain(Group(*_beneath(done, language, zone)), WIDTH)


def styled(text: str, sentences: Sequence[AnsweredSentence]) -> Text:
    """Return the text of sentences with their notes and footnote marks told apart from what they say."""
    body = Text(safe(text))
    body.highlight_words([f"({one_line(said.note)})" for said in sentences if said.note], style="dim")
    marks = {f"[{number}]" for said in sentences for number in said.citations}
    body.highlight_words(sorted(marks), style=MARK)
    return body


def source_view(citation: Citation, *, zone: tzinfo, whole: bool = False) -> RenderableType:
    """Show one source: what page it is, where it can be read, and the quoted lines, or the `whole` passage."""
    text = safe(citation.passage_text) if whole else f"“{safe(citation.quote)}”"
    address = citation.url or f"{citation.corpus}: {citation.document}"
    lines = [
        _title(citation.title, citation.section, day(citation.date, zone)),
        _link(address),
        Text(text, style="italic" if not whole else ""),
    ]
    return _beside(Text(f"[{citation.number}]", style=MARK), Group(*lines))


def sources_view(citations: Sequence[Citation], *, zone: tzinfo) -> RenderableType:
    """Show sources with their whole passages."""
    return Constrain(Group(*blocks(source_view(citation, zone=zone, whole=True) for citation in citations)), WIDTH)


def hits_view(hits: Sequence[Hit]) -> RenderableType:
    """Show what a search found, best first."""
    if not hits:
        return Text("Nothing was found.")
    return Constrain(Group(*blocks(_hit(place, hit) for place, hit in enumerate(hits, start=1))), WIDTH)


def blocks(views: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Put an empty line between blocks."""
    for place, view in enumerate(views):
        if place:
            yield Text()
        yield view


def day(moment: datetime | None, zone: tzinfo) -> str:
    """Return the date of a moment in a time zone, as ISO 8601; empty when nobody knows it."""
    return moment.astimezone(zone).date().isoformat() if moment else ""


def _beneath(done: Answered, language: str, zone: tzinfo) -> list[RenderableType]:
    answer, parts = done.answer, list[RenderableType]()
    if answer.sentences and answer.withheld:
        total = len(answer.sentences) + answer.withheld
        parts += [Text(), Text(left_out(answer.withheld, total, language), style="dim")]
    if answer.citations:
        parts += [Text(), *blocks(source_view(citation, zone=zone) for citation in answer.citations)]
    if answer.status is Status.ABSTAINED and answer.nearest:
        parts += [Text(), Text(say("nearest", language)), *(_nearest(hit) for hit in answer.nearest)]
    return parts


def _title(title: str, section: str, *after: str) -> Text:
    path = f"{one_line(title)} › {one_line(section)}" if section else one_line(title)
    return Text.assemble((path, "bold"), *((f" · {part}", "dim") for part in after if part))


def _link(address: str) -> Text:
    url = linkable(address)
    return Text(one_line(address), style=Style(color="blue", link=url) if url else "dim", overflow="fold")


def _address(hit: Hit) -> str:
    return hit.document.url or f"{hit.passage.corpus}: {hit.passage.document}"


def _nearest(hit: Hit) -> RenderableType:
    lines = (_title(hit.document.title, hit.passage.section), _link(_address(hit)))
    return _beside(Text("•", style=MARK), Group(*lines))


def _hit(place: int, hit: Hit) -> RenderableType:
    lines = [
        _title(hit.document.title, hit.passage.section, f"{hit.score:.2f}"),
        _link(_address(hit)),
        Text(safe(hit.passage.text)),
    ]
    return _beside(Text(f"{place}.", style=MARK), Group(*lines))


def _beside(mark: Text, content: RenderableType) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(mark, content)
    return grid
