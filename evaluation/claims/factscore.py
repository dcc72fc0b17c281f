"""FActScore: sentences of short lives, and the facts into which people split them. No evidence is here."""

import re
from collections.abc import Iterator

from evaluation.claims.rows import Row
from evaluation.claims.types import SplitSentence

_MARK = re.compile(r"\A[\s-]+")
_TWO_IN_ONE = re.compile(r"(?<=\.)(?:\s+-)+\s+")


def read(row: Row) -> Iterator[SplitSentence]:
    """Read the sentences of one life that people split; a model that declined to write has none."""
    if row.fields.get("annotations") is None:
        return
    topic = row.text("topic")
    for place, sentence in enumerate(row.within("annotations")):
        if sentence.fields.get("human-atomic-facts"):
            listed = [fact.text("text") for fact in sentence.within("human-atomic-facts")]
            facts = tuple(_MARK.sub("", fact) for several in listed for fact in _TWO_IN_ONE.split(several))
            yield SplitSentence(f"{row.line}-{place}", sentence.text("text"), facts, topic)
