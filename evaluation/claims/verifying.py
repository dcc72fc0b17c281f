"""Verifiers: whoever says whether passages support a claim, by the names that `--verifier` takes.

`majority`, `overlap` and `likeness` are baselines, which know nothing of meaning; `local` is the check at the gate.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from evaluation.claims.types import LabelledClaim
from evaluation.errors import EvaluationError
from pipeline.supporting import Checker
from storage.embedding import Embedder
from storage.embedding.opening import MINILM, open_embedder
from storage.embedding.states import TokenStates, open_states
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms
from storage.types import Document, Evidence, Passage, Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """What a verifier makes of a claim: how well it is supported, from 0 to 1, what it decides, and why."""

    score: float
    verdict: Verdict | None = None
    """None from a verifier that only scores, and leaves it to a threshold to decide."""
    reasons: tuple[str, ...] = ()


class Verifier(Protocol):
    """Says whether the passages, read together, support the claim."""

    async def __call__(self, claim: str, evidence: Sequence[str]) -> Judged:
        """Judge one claim."""
        ...


Opener = Callable[[Sequence[LabelledClaim]], Verifier]
"""Makes a verifier ready for the claims that it will be asked about; whatever it loads, it loads here."""


def open_majority(claims: Sequence[LabelledClaim]) -> Verifier:
    """Say of every claim what most claims are labelled."""
    counted = Counter(claim.label for claim in claims)
    most = max(Verdict, key=lambda verdict: counted[verdict])

    async def judge(claim: str, evidence: Sequence[str]) -> Judged:
        del claim, evidence
        return Judged(float(most is Verdict.SUPPORTS), most, (f"most claims are labelled {most}",))

    return judge


def open_overlap(_: Sequence[LabelledClaim]) -> Verifier:
    """Score the share of the claim's content terms that stand in any of the passages."""

    async def judge(claim: str, evidence: Sequence[str]) -> Judged:
        wanted = set(content_terms(claim))
        missing = wanted.difference(*map(content_terms, evidence))
        share = 1 - len(missing) / len(wanted) if wanted else 0.0
        return Judged(share, reasons=(f"not in the passages: {', '.join(sorted(missing))}",) if missing else ())

    return judge


def open_likeness(_: Sequence[LabelledClaim]) -> Verifier:
    """Score the cosine of the claim with the most alike sentence of the passages."""
    return likeness_by(open_embedder(MINILM, {}))


def likeness_by(embedder: Embedder) -> Verifier:
    """Return `likeness` over the vectors of any embedder."""

    async def judge(claim: str, evidence: Sequence[str]) -> Judged:
        sentences = [passage[start:end] for passage in evidence for start, end in sentence_spans(passage)]
        if not sentences:
            return Judged(0.0, reasons=("there is no evidence",))
        vectors = embedder.embed([claim, *sentences])
        cosines = vectors[1:] @ vectors[0]
        best = int(cosines.argmax())
        return Judged(float(cosines[best].clip(0, 1)), reasons=(f"most alike: {sentences[best]}",))

    return judge


def open_local(_: Sequence[LabelledClaim]) -> Verifier:
    """Ask the check that stands at the gate. It was trained on the sets that `train` was given: test it on others."""
    reader = open_states(Path(os.environ.get("FOOTNOTE_HOME", ".footnote")))

    async def read(texts: Sequence[str]) -> tuple[TokenStates, ...]:
        return reader.read(texts)

    return local_by(Checker(read))


def local_by(check: Checker) -> Verifier:
    """Ask a check; what a passage says otherwise is refuted."""

    async def judge(claim: str, evidence: Sequence[str]) -> Judged:
        found = await check(claim, evidence_of(evidence))
        refuted = Verdict.REFUTES if found.contradicted else Verdict.NOT_ENOUGH_INFO
        return Judged(found.score, Verdict.SUPPORTS if found.holds else refuted, found.reasons)

    return judge


def evidence_of(texts: Sequence[str], *, title: str = "") -> tuple[Evidence, ...]:
    """Return texts as passages of a page of no corpus; reasons call them by their numbers."""
    page = Document("", "", title)
    passages = (Passage(str(number), "", "", "", text, number, "") for number, text in enumerate(texts, start=1))
    return tuple(Evidence(passage.text, passage, page, (0, len(passage.text))) for passage in passages)


VERIFIERS: Mapping[str, Opener] = MappingProxyType({
    "majority": open_majority,
    "overlap": open_overlap,
    "likeness": open_likeness,
    "local": open_local,
})  # fmt: skip
"""Every verifier by its name; a model will be one more."""


def opener(name: str) -> Opener:
    """Return what opens the verifier of that name.

    Raises:
        EvaluationError: none is called so.
    """
    if name not in VERIFIERS:
        raise EvaluationError(f"No verifier is called {name!r}.", hint=f"There are {', '.join(VERIFIERS)}.")
    return VERIFIERS[name]
