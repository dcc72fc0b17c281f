"""The local support check: do these passages say this sentence? Decided here, without a model server.

A sentence is supported when it stands verbatim, as one or more whole sentences, in one of the passages. A stretch cut
out of a sentence is not: "the office closes early" is no quotation of "Nobody knows whether the office closes early".
"""

from collections.abc import Sequence

from pipeline.spans import quotable_spans
from pipeline.types import Support
from storage.types import Passage


async def stands_verbatim(sentence: str, passages: Sequence[Passage]) -> Support:
    """Hold if `sentence` is whole sentences of one passage, differences in white space aside."""
    wanted = _normal(sentence)
    if not wanted:
        return Support(0.0, holds=False, reasons=("there is no text to support",))
    for passage in passages:
        if wanted in _runs(passage):
            return Support(1.0, holds=True, reasons=(f"stands verbatim in passage {passage.id}",))
    if any(wanted in _normal(passage.text) for passage in passages):
        return Support(0.0, holds=False, reasons=("is only a part of a sentence of the passages it cites",))
    return Support(0.0, holds=False, reasons=("does not stand verbatim in the passages it cites",))


def _runs(passage: Passage) -> set[str]:
    """Return every run of neighbouring sentences of a passage, white space normalised."""
    spans = quotable_spans(passage)
    return {_normal(passage.text[first[0] : last[1]]) for place, first in enumerate(spans) for last in spans[place:]}


def _normal(text: str) -> str:
    return " ".join(text.split())
