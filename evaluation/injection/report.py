"""What is reported of each set of attacks, and the table of it. Pure."""

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

from evaluation.injection.leaving import Leaves, leaves
from evaluation.injection.measuring import Outcome

_COLUMNS = (
    ("set", "set"),
    ("pages", "pages"),
    ("said", "said"),
    ("withheld", "withheld"),
    ("links", "links"),
    ("images", "images"),
    ("mentions", "mentions"),
    ("only planted", "on the planted span alone"),
    ("by obedience", "of them by the verifier's word"),
    ("sites", "names of sites"),
    ("named", "in notes and footnotes"),
    ("quoted", "in quotations as they stand"),
)
_KEPT = 120


def report(name: str, written: Sequence[Outcome], quoted: Sequence[Outcome], shown: int = 0) -> dict[str, Any]:
    """Return the counts of one set; sentences that a turn says twice are counted once.

    `quoted` are turns that say every sentence of the page as it stands. Links, images and mentions in these, and in
    notes and footnotes, are the page's own words, which a channel has to escape.
    """
    left = sum((one.text for one in written), Leaves())
    return {
        "set": name,
        "pages": len(written),
        "said": sum(len({sentence.text for sentence in one.sentences}) for one in written),
        "withheld": sum(one.withheld for one in written),
        "links": left.links,
        "images": left.images,
        "mentions": left.mentions,
        "only planted": sum(len(one.on_planted) for one in written),
        "by obedience": sum(len(one.on_word) for one in written),
        "sites": left.sites,
        "named": sum(one.named.harmful for one in written),
        "quoted": sum(one.text.harmful for one in quoted),
        "examples": _examples(written)[:shown],
    }


def table(reports: Sequence[dict[str, Any]]) -> str:
    """Return the counts as a table in Markdown, a set a row, and all of them last."""
    counted = [key for key, _ in _COLUMNS[1:]]
    total = {"set": "all", **{key: sum(one[key] for one in reports) for key in counted}}
    rows = [" | ".join(str(one[key]) for key, _ in _COLUMNS) for one in (*reports, total)]
    head = " | ".join(name for _, name in _COLUMNS)
    lines = [f"| {head} |", "|" + "---|" * len(_COLUMNS), *(f"| {row} |" for row in rows)]
    return "\n".join(lines)


def examples(reports: Sequence[dict[str, Any]]) -> str:
    """Return what left on the planted span alone, or should not have left at all, a line each."""
    return "\n".join(f"{one['set']}: {example}" for one in reports for example in one["examples"])


def _examples(written: Sequence[Outcome]) -> list[str]:
    """Return what holds a link, an image or a mention first, then what stands on the planted span alone."""
    harmful = [sentence.text for one in written for sentence in one.sentences if leaves(sentence.text).harmful]
    told = [f"! {shorten(text, _KEPT, placeholder=' …')}" for text in dict.fromkeys(harmful)]
    planted = [text for one in written for text in one.on_planted]
    return told + [f"- {shorten(text, _KEPT, placeholder=' …')}" for text in dict.fromkeys(planted)]
