"""WiCE: a sentence of an article of Wikipedia against the web page that it cites, sentence by sentence.

A page is far longer than what is offered for a claim, so passages of it are chosen: for a claim that the page supports
at least in part, those around one set of its supporting sentences, the set that lies closest together; for one that it
does not support, those that share most words with it. A partly supported claim says more than its page: it counts as
not supported.
"""

from collections.abc import Iterator
from typing import Any

from evaluation.claims.chunks import MOST, chunked, covering, joined, most_alike
from evaluation.claims.rows import Row
from evaluation.claims.types import LabelledClaim
from storage.types import Verdict

_LABELS = {
    "supported": Verdict.SUPPORTS,
    "partially_supported": Verdict.NOT_ENOUGH_INFO,
    "not_supported": Verdict.NOT_ENOUGH_INFO,
}
_UNSUPPORTED = {label: label == "not_supported" for label in _LABELS}
_METADATA = "(meta data) "


def read(row: Row) -> Iterator[LabelledClaim]:
    """Read one claim."""
    (about,) = row.within("meta")
    claim = row.text("claim")
    label = row.one_of("label", _LABELS)
    evidence = _offered(claim, row)
    yield LabelledClaim(about.text("id"), "wice", claim, evidence, label, about.text("claim_title"))


def _offered(claim: str, row: Row) -> tuple[str, ...]:
    sentences = [str(sentence).removeprefix(_METADATA) for sentence in row.many("evidence")]
    sets = [_places(row, several, len(sentences)) for several in row.many("supporting_sentences")]
    if row.one_of("label", _UNSUPPORTED):
        return most_alike(claim, [joined(sentences, run) for run in chunked(sentences)])
    found = [covering(sentences, places) for places in sets if places]
    if not found:
        raise row.unlike("supporting_sentences", "the numbers of sentences", row.fields["supporting_sentences"])
    return min(found, key=len)[:MOST]


def _places(row: Row, several: Any, count: int) -> list[int]:
    """Return one set of sentence numbers, each below `count`; an empty one says that nothing supports."""
    if not isinstance(several, list) or not all(isinstance(at, int) and 0 <= at < count for at in several):
        raise row.unlike("supporting_sentences", f"lists of numbers from 0 to {count - 1}", several)
    return several
