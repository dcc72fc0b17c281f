"""Open verifiers by name, and judge labelled claims with them, timed on one core.

`majority`, `overlap` and `likeness` are baselines; `local` is the support check of the gate.
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
from pipeline.types import Support
from storage.indexes.embedders import MINILM
from storage.indexes.embedding import Embedder, open_embedder
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms
from storage.types import Document, Evidence, Passage, Verdict


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """A verifier's judgement of a claim: its score, and what else it reports."""

    score: float  # how well the claim is supported, from 0 to 1
    verdict: Verdict | None = None  # None if the verifier only scores
    reasons: tuple[str, ...] = ()
    sure: bool | None = None  # whether the gate lets the claim pass; None if the verifier is not the gate's
    judged: bool = False  # whether a configured model judges the claim first
    quoted: bool = False  # whether its passage is quoted instead, if a model is configured


class Verifier(Protocol):
    """Judges whether passages, taken together, support a claim. The claim may repeat words of the questions `asked`."""

    async def __call__(self, claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement: ...


OpenVerifier = Callable[[Sequence[LabelledClaim]], Verifier]
"""Opens a verifier for the claims that it will judge, and loads all that it needs."""


def open_majority(claims: Sequence[LabelledClaim]) -> Verifier:
    """Return a verifier that gives every claim the most frequent label."""
    counted = Counter(claim.label for claim in claims)
    most = max(Verdict, key=lambda verdict: counted[verdict])

    async def judge(claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement:
        del claim, evidence, asked
        return ClaimJudgement(float(most is Verdict.SUPPORTS), most, (f"most claims are labelled {most}",))

    return judge


def open_overlap(_: Sequence[LabelledClaim]) -> Verifier:
    """Return a verifier whose score is the share of the claim's content terms that occur in a passage."""

    async def judge(claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement:
        del asked
        terms = set(content_terms(claim))
        missing = terms.difference(*map(content_terms, evidence))
        share = 1 - len(missing) / len(terms) if terms else 0.0
        return ClaimJudgement(share, reasons=(f"not in the passages: {', '.join(sorted(missing))}",) if missing else ())

    return judge


def open_likeness(_: Sequence[LabelledClaim]) -> Verifier:
    """Return a verifier whose score is the cosine of the claim with the passages' most similar sentence."""
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
    """Return the gate's support check as a verifier. It is trained on public sets, so it must be tested on others."""
    check = open_checker()

    async def judge(claim: str, evidence: Sequence[str], *, asked: Sequence[str] = ()) -> ClaimJudgement:
        support = await check(claim, build_evidence(evidence), asked=asked)
        return ClaimJudgement(
            support.score,
            decide_verdict(support),
            support.reasons,
            sure=is_sure(support),
            judged=is_judged(support),
            quoted=is_quoted(support),
        )

    return judge


def decide_verdict(support: Support) -> Verdict:
    """Return the verdict of the local check. A claim that contradicts a passage is refuted."""
    if support.holds:
        return Verdict.SUPPORTS
    return Verdict.REFUTES if support.contradicted else Verdict.NOT_ENOUGH_INFO


def build_evidence(texts: Sequence[str], *, title: str = "") -> tuple[Evidence, ...]:
    """Return texts as passages without a corpus. They are numbered from 1, and reasons refer to these numbers."""
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
        raise EvaluationError(
            f"No verifier is called {name!r}.", hint=f"The verifiers are {', '.join(VERIFIERS)} and judge."
        )
    return VERIFIERS[name]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    claim: LabelledClaim
    judged: ClaimJudgement
    milliseconds: float


async def judge_claims(claims: Sequence[LabelledClaim], verifier: Verifier) -> tuple[JudgedClaim, ...]:
    """Judge claims in order, on one core if the system allows that. The first is judged twice, to load everything."""
    with pin_to_one_core():
        return tuple([await _time_judgement(claim, verifier) for claim in (*claims[:1], *claims)])[1:]


@contextmanager
def pin_to_one_core() -> Iterator[None]:
    """Restrict the calling thread, and the threads that it starts, to one core, if the system allows that."""
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
