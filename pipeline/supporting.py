"""The local support check: do these passages say this sentence? Decided here, in milliseconds, without a model server.

A sentence that stands in a passage word for word is supported. Any other must pass two judges. The rules
(`support.findings`) look for each of its numbers, dates, units and names in the passages, and for a denial: what they
miss is not overruled by anything. The scorer (`support.scoring`) weighs how well the rest of it is covered in words
and in meaning: what fails only there may be put to a model, where there is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipeline.spans import quotable_spans
from pipeline.support.findings import Finding, Outcome, findings
from pipeline.support.likeness import closest
from pipeline.support.scoring import Scorer, trained
from pipeline.support.signs import signs
from pipeline.support.states import Read
from pipeline.types import Support
from storage.language.words import content_terms
from storage.types import Evidence, Passage, Reason

Strictness = Literal["loose", "normal", "strict"]
"""How sure the scorer must be. Each level's price is printed by `footnote evaluate train`."""

LEAST_SAID = 2
"""Words with a meaning of their own that a sentence must have: "None of it is true." has one."""
LONGEST = 2_000
"""Characters of a sentence that can be judged: nothing longer is one."""


@dataclass(frozen=True, slots=True)
class Checker:
    """The check as it goes into a kit: `await checker(sentence, evidence)`."""

    read: Read
    strictness: Strictness = "normal"
    names: tuple[str, ...] = ()
    """Names that every page may be taken to speak of: the team's own, which its own pages seldom say."""
    scorer: Scorer = field(default_factory=trained)

    async def __call__(self, sentence: str, evidence: Sequence[Evidence]) -> Support:
        """Decide whether the passages of the evidence, read together, say the sentence.

        The titles and other names of their pages count as said in them, as a page says "she" of whom it is about.
        """
        passages = tuple({piece.passage.id: piece.passage for piece in evidence}.values())
        unread = _unreadable(sentence, passages)
        if unread:
            return Support(0.0, holds=False, reasons=(unread,), because=(Reason("unreadable"),))
        verbatim = stands_verbatim(sentence, passages)
        if verbatim:
            said = (f"stands verbatim in passage {verbatim}",)
            return Support(1.0, holds=True, reasons=said, because=(Reason("verbatim"),))
        if len(set(content_terms(sentence))) < LEAST_SAID:
            little = ("it says too little to be supported by anything",)
            return Support(0.0, holds=False, reasons=little, because=(Reason("says_little"),))
        found = await examined(sentence, evidence, self.read, names=self.names)
        levels = self.scorer.thresholds
        return decided(found, self.scorer.score(found.signs), levels[self.strictness], sure=levels["strict"])


@dataclass(frozen=True, slots=True)
class Examined:
    """A sentence as both judges see it."""

    signs: Mapping[str, float]
    found: tuple[Finding, ...]
    nearest: str
    """The sentence of the passages that says most of it."""

    @property
    def against(self) -> tuple[Finding, ...]:
        """What decides by itself: all that is missing or contradicted, but not a name that may be meant by "she"."""
        return tuple(one for one in self.found if one.outcome in {Outcome.ABSENT, Outcome.CONTRADICTED})


async def examined(sentence: str, evidence: Sequence[Evidence], read: Read, *, names: Sequence[str] = ()) -> Examined:
    """Look a sentence up in the passages of its evidence, by rule, by words and by meaning.

    `names` count as said, besides the titles and other names of the passages' pages.
    """
    passages = tuple({piece.passage.id: piece.passage for piece in evidence}.values())
    named = tuple(dict.fromkeys(name for piece in evidence for name in _names(piece) if name))
    named += tuple(names)
    found = findings(sentence, [passage.text for passage in passages], context=named)
    said = [[passage.text[start:end] for start, end in quotable_spans(passage)] for passage in passages]
    nearest = closest(sentence, said)
    states, *source = await read([sentence, *nearest])
    weighed = signs(sentence, said, states=states, source=source, found=found)
    return Examined(weighed, found, nearest[0] if nearest else "")


def decided(examined: Examined, score: float, threshold: float, *, sure: float) -> Support:
    """Join what the rules found with the score: below `threshold` it fails, below `sure` it holds in doubt. Pure."""
    said = (examined.nearest,) if examined.nearest else ()
    nearest = tuple(f"nearest is “{one}”" for one in said)
    if examined.against:
        contradicted = any(one.outcome is Outcome.CONTRADICTED for one in examined.against)
        why = tuple(dict.fromkeys(one.because for one in examined.against))
        return Support(score, holds=False, reasons=_reasons(examined.against), contradicted=contradicted, because=why)
    if score < threshold:
        reason = f"too little of its meaning stands in the passages ({score:.2f}, needed {threshold:.2f})"
        why = (Reason("not_said"), *(Reason("nearest", (one,)) for one in said))
        return Support(score, holds=False, reasons=(reason, *nearest), appealable=True, because=why)
    reasons = (*_reasons(examined.found), *nearest)
    so = Reason("said", said) if said else Reason("so")
    return Support(score, holds=True, reasons=reasons, doubtful=score < sure, because=(so,))


async def verbatim(sentence: str, evidence: Sequence[Evidence]) -> Support:
    """Hold for what stands word for word and for nothing else: the check of those who only quote."""
    found = stands_verbatim(sentence, [piece.passage for piece in evidence])
    reason = f"stands verbatim in passage {found}" if found else "does not stand verbatim in the passages it cites"
    because = Reason("verbatim" if found else "not_verbatim")
    return Support(float(bool(found)), holds=bool(found), reasons=(reason,), because=(because,))


def stands_verbatim(sentence: str, passages: Sequence[Passage]) -> str:
    """Return the id of the passage that has `sentence` as one or more whole sentences, white space aside; else "".

    A stretch cut out of a sentence is none: "the office closes early" is no quotation of "Nobody knows whether the
    office closes early".
    """
    wanted = _normal(sentence)
    return next((passage.id for passage in passages if wanted and wanted in _runs(passage)), "")


def _unreadable(sentence: str, passages: Sequence[Passage]) -> str:
    if not sentence.strip():
        return "there is no text to support"
    if len(sentence) > LONGEST:
        return f"it has more than {LONGEST:,} characters"
    return "" if passages else "it cites nothing"


def _names(evidence: Evidence) -> tuple[str, ...]:
    return (evidence.document.title, *evidence.document.aliases, evidence.passage.section)


def _reasons(found: Sequence[Finding]) -> tuple[str, ...]:
    """Say what was missed, one reason each, and what was found in a single one."""
    missed = (one.reason for one in found if one.outcome is not Outcome.FOUND)
    said = ", ".join(dict.fromkeys(f"“{one.said}”" for one in found if one.outcome is Outcome.FOUND))
    return tuple(dict.fromkeys((*missed, *([f"the passages say {said}"] if said else []))))


def _runs(passage: Passage) -> set[str]:
    """Return every run of neighbouring sentences of a passage, white space normalised."""
    spans = quotable_spans(passage)
    return {_normal(passage.text[first[0] : last[1]]) for place, first in enumerate(spans) for last in spans[place:]}


def _normal(text: str) -> str:
    return " ".join(text.split())
