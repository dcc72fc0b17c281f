"""The gate: the only way text leaves a system. The answer is assembled from what it let through, and nothing else.

It trusts no system: evidence must be a passage that was retrieved in this turn, unchanged in every field; text that is
no quotation must be free of links, images and mentions; and what is withheld is counted and kept with its reason for
the record. A sentence that fails the local check on its meaning alone, or hardly passes it, is put to a model, where
there is one.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline import citing, notes
from pipeline.errors import PipelineError
from pipeline.kit import Supports
from pipeline.supporting import stands_verbatim
from pipeline.types import Answer, CitedSentence, Event, Quoted, Said, Status
from storage.types import CheckedClaim, Claim, Evidence, Hit, Verdict

log = logging.getLogger(__name__)


SecondOpinion = Callable[[str, Sequence[Evidence]], Awaitable[CheckedClaim | None]]
"""What a model says of a sentence by the passages that it cites; None where there is nothing to judge by."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """A sentence that the gate did not let through, and why."""

    text: str
    reason: str


class Gate:
    """One turn's gate; `gate.say` is what goes into the kit."""

    def __init__(
        self,
        *,
        found: Mapping[str, Hit],
        supports: Supports,
        tell: Callable[[Event], None],
        verify: SecondOpinion | None = None,
    ) -> None:
        self._found = found
        self._supports = supports
        self._tell = tell
        self._verify = verify
        self._said: list[CitedSentence] = []
        self._claims: list[CheckedClaim] = []
        self._withheld: list[Withheld] = []

    @property
    def withheld(self) -> tuple[Withheld, ...]:
        """What was not let through, in order."""
        return tuple(self._withheld)

    async def say(self, sentence: CitedSentence) -> bool:
        """Let a sentence through if it stands on passages found in this turn; return whether it was."""
        fault = _fault(sentence, self._found)
        if fault:
            return self._withhold(sentence, fault)
        support = await self._supports(sentence.text, sentence.evidence)
        reasons = "; ".join(support.reasons)
        claim = Claim(sentence.text, origin="retrieved")
        cited = tuple(dict.fromkeys(evidence.passage.id for evidence in sentence.evidence))
        held = CheckedClaim(claim, Verdict.SUPPORTS, cited, reasons, because=support.because)
        checked = held if support.holds else None
        if self._verify and (support.doubtful or support.appealable):
            return await self._appeal(sentence, self._verify, reasons, checked)
        if checked:
            return self._let_through(sentence, checked)
        return self._withhold(sentence, reasons or "its passages do not support it")

    async def _appeal(
        self, sentence: CitedSentence, verify: SecondOpinion, reasons: str, held: CheckedClaim | None
    ) -> bool:
        """Put a sentence to a model; where it cannot be asked, what the local check says stands."""
        try:
            checked = await verify(sentence.text, sentence.evidence)
        except PipelineError as error:
            if held:
                return self._let_through(sentence, held)
            return self._withhold(sentence, f"{reasons}; it could not be verified: {error}")
        if checked is None or checked.verdict is not Verdict.SUPPORTS:
            verdict = f"{checked.verdict}: {checked.reasoning}" if checked else "nothing to judge by"
            return self._withhold(sentence, f"{reasons}; the model was asked, and says {verdict}")
        return self._let_through(sentence, checked)

    def quote(self, evidence: Evidence) -> bool:
        """Show what a passage found in this turn says, word for word, until there is an answer; return whether it is.

        It is no part of the answer. What is not as it stands in a found passage is not shown.
        """
        fault = _evidence_fault(evidence, self._found)
        if fault:
            log.warning("a quotation was not shown: %s", fault)
            return False
        self._tell(Quoted(evidence))
        return True

    def _let_through(self, sentence: CitedSentence, checked: CheckedClaim) -> bool:
        self._claims.append(checked)
        self._said.append(sentence)
        self._tell(Said(citing.number(self._said)[0][-1]))
        return True

    def answer(self, status: Status, *, nearest: Sequence[Hit] = (), claims: Sequence[CheckedClaim] = ()) -> Answer:
        """Assemble the answer of a turn that ended with `status`.

        Only an answered turn carries sentences, and a turn in which nothing was said has not been answered: it
        becomes an abstention. `nearest` is kept for abstentions alone. `claims` are those that a model made and that
        were verified, whatever the verdict: every turn keeps them for its record, and no channel shows their text.
        """
        if status is Status.ANSWERED and not self._said:
            status = Status.ABSTAINED
        withheld = len(self._withheld)
        if status is not Status.ANSWERED:
            pages = tuple(nearest) if status is Status.ABSTAINED else ()
            return Answer(status, claims=tuple(claims), nearest=pages, withheld=withheld)
        sentences, citations = citing.number(self._said)
        return Answer(status, sentences, citations, claims=(*claims, *self._claims), withheld=withheld)

    def _withhold(self, sentence: CitedSentence, reason: str) -> bool:
        self._withheld.append(Withheld(sentence.text, reason))
        log.info("sentences withheld in this turn: %d", len(self._withheld))  # their text is the record's alone
        return False


def _fault(sentence: CitedSentence, found: Mapping[str, Hit]) -> str:
    """Name what is wrong with a sentence's form or evidence; empty when nothing is."""
    if not sentence.text.strip():
        return "it has no text"
    if not sentence.evidence:
        return "it cites nothing"
    if not any(notes.is_ours(sentence.note, evidence) for evidence in sentence.evidence):
        return "its note does not name its source"
    if _has_markup(sentence):
        return "it has a link, an image or a mention that no page has so"
    return next(filter(None, (_evidence_fault(evidence, found) for evidence in sentence.evidence)), "")


def _has_markup(sentence: CitedSentence) -> bool:
    """Return whether a text would link, show or call something; a page's own words are quoted as they stand."""
    quoted = stands_verbatim(sentence.text, [evidence.passage for evidence in sentence.evidence])
    return citing.cleaned(sentence.text) != sentence.text and not quoted


def _evidence_fault(evidence: Evidence, found: Mapping[str, Hit]) -> str:
    hit = found.get(evidence.passage.id)
    if hit is None:
        return f"passage {evidence.passage.id} was not retrieved in this turn"
    if evidence.passage != hit.passage or evidence.document != hit.document:
        return f"passage {evidence.passage.id} is not as it was retrieved"
    start, end = evidence.span
    if not 0 <= start < end <= len(hit.passage.text):
        return f"the span {evidence.span} does not lie in passage {evidence.passage.id}"
    if hit.passage.text[start:end] != evidence.text:
        return f"the evidence is not what stands at {evidence.span} in passage {evidence.passage.id}"
    return ""
