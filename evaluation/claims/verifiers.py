"""Open verifiers by name and judge labelled claims with them, timed on one core.

`majority`, `overlap` and `likeness` are baselines; `local` is the support check at the gate.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import Protocol

from evaluation import EvaluationError
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.workbench import open_checker
from pipeline.gate import is_judged, is_quoted, is_sure
from pipeline.support.support_check import SupportChecker
from storage.indexes.embedding import MINILM, Embedder, open_embedder
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms
from storage.types import Document, Evidence, Passage, Verdict


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """A verifier's judgement of a claim: how well it is supported, from 0 to 1, the verdict, and why."""

    score: float
    verdict: Verdict | None = None  # None from a verifier that only scores, and leaves it to a threshold to decide
    reasons: tuple[str, ...] = ()
    sure: bool | None = None  # whether it leaves the gate unchanged; None from a verifier that is not at the gate
    judged: bool = False  # whether a configured model judges it first
    quoted: bool = False  # whether its passage is quoted instead, if a model is configured


class Verifier(Protocol):
    """Judge whether the passages together support the claim; it may repeat words of the questions `asked`."""

    async def __call__(self, claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement: ...


OpenVerifier = Callable[[Sequence[LabelledClaim]], Verifier]
"""Makes a verifier ready for the claims that it will be asked about; whatever it loads, it loads here."""


def open_majority(claims: Sequence[LabelledClaim]) -> Verifier:
    """Give every claim the most frequent label."""
    counted = Counter(claim.label for claim in claims)
    most = max(Verdict, key=lambda verdict: counted[verdict])

    async def judge(claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement:
        del claim, evidence, asked
        return ClaimJudgement(float(most is Verdict.SUPPORTS), most, (f"most claims are labelled {most}",))

    return judge


def open_overlap(_: Sequence[LabelledClaim]) -> Verifier:
    """Score the share of the claim's content terms that are in any of the passages."""

    async def judge(claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement:
        del asked
        terms = set(content_terms(claim))
        missing = terms.difference(*map(content_terms, evidence))
        share = 1 - len(missing) / len(terms) if terms else 0.0
        return ClaimJudgement(share, reasons=(f"not in the passages: {', '.join(sorted(missing))}",) if missing else ())

    return judge


def open_likeness(_: Sequence[LabelledClaim]) -> Verifier:
    """Score the cosine of the claim with the most alike sentence of the passages."""
    return build_similarity_verifier(open_embedder(MINILM, {}))


def build_similarity_verifier(embedder: Embedder) -> Verifier:
    async def judge(claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement:
        del asked
        sentences = [passage[start:end] for passage in evidence for start, end in sentence_spans(passage)]
        if not sentences:
            return ClaimJudgement(0.0, reasons=("there is no evidence",))
        vectors = embedder.embed([claim, *sentences])
        cosines = vectors[1:] @ vectors[0]
        best = int(cosines.argmax())
        return ClaimJudgement(float(cosines[best].clip(0, 1)), reasons=(f"most alike: {sentences[best]}",))

    return judge


def open_local(_: Sequence[LabelledClaim]) -> Verifier:
    """Use the check at the gate. It was trained on the sets that `train` read: test it on others."""
    return build_local_verifier(open_checker())


def build_local_verifier(check: SupportChecker) -> Verifier:
    """Use a check; a claim that a passage contradicts is refuted."""

    async def judge(claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement:
        support = await check(claim, build_evidence(evidence), asked=asked)
        refuted = Verdict.REFUTES if support.contradicted else Verdict.NOT_ENOUGH_INFO
        verdict, reasons = Verdict.SUPPORTS if support.holds else refuted, support.reasons
        return ClaimJudgement(
            support.score,
            verdict,
            reasons,
            sure=is_sure(support),
            judged=is_judged(support),
            quoted=is_quoted(support),
        )

    return judge


def build_evidence(texts: Sequence[str], *, title: str = "") -> tuple[Evidence, ...]:
    """Return texts as numbered passages without a corpus; reasons refer to the numbers."""
    page = Document("", "", title)
    passages = (Passage(str(number), "", "", "", text, number, "") for number, text in enumerate(texts, start=1))
    return tuple(Evidence(passage.text, passage, page, (0, len(passage.text))) for passage in passages)


VERIFIERS: Mapping[str, OpenVerifier] = MappingProxyType({
    "majority": open_majority,
    "overlap": open_overlap,
    "likeness": open_likeness,
    "local": open_local,
})  # fmt: skip


def find_verifier(name: str) -> OpenVerifier:
    """Return the function that opens a verifier. Raises `EvaluationError` for an unknown name."""
    if name not in VERIFIERS:
        raise EvaluationError(f"No verifier is called {name!r}.", hint=f"There are {', '.join(VERIFIERS)} and judge.")
    return VERIFIERS[name]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    claim: LabelledClaim
    judged: ClaimJudgement
    milliseconds: float


async def judge_claims(claims: Sequence[LabelledClaim], verifier: Verifier) -> tuple[JudgedClaim, ...]:
    """Judge claims in order, on one core where the system can bind a process to one."""
    with pin_to_one_core():
        for claim in claims[:1]:
            await verifier(claim.claim, claim.evidence, asked=claim.asked)
        return tuple([await _time_judgement(claim, verifier) for claim in claims])


@contextmanager
def pin_to_one_core() -> Iterator[None]:
    """Bind the calling thread, and those it starts, to one core, if the system supports it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


async def _time_judgement(claim: LabelledClaim, verifier: Verifier) -> JudgedClaim:
    started = perf_counter()
    judged = await verifier(claim.claim, claim.evidence, asked=claim.asked)
    return JudgedClaim(claim, judged, (perf_counter() - started) * 1000)
