"""Judge labelled claims with the gate's support check, timed on one core, or with the model that judges dialogues."""

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from random import Random
from time import perf_counter

from bot.settings.tables.settings_tables import Settings
from evaluation import EvaluationError
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.workbench import gather_limited, open_checker
from pipeline.errors import ModelRefused, PromptTooLong, UnreadableReply
from pipeline.gate import is_judged, is_quoted, is_sure
from pipeline.llm.model import LLM, BudgetMeter
from pipeline.llm.model_client import LazyModel
from pipeline.prompts.prompter import Prompter
from pipeline.stages.claim_check import request_verification
from pipeline.stages.findings import collect_sentences
from pipeline.types import Conversation, Support, Turn
from storage.types import Document, Evidence, Passage, Verdict


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """A verifier's judgement of a claim: its score, and what else it reports."""

    score: float  # how well the claim is supported, from 0 to 1
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    sure: bool | None = None  # whether the gate lets the claim pass; None if the verifier is not the gate's
    judged: bool = False  # whether a configured model judges the claim first
    quoted: bool = False  # whether its passage is quoted instead, if a model is configured


Verifier = Callable[..., Awaitable[ClaimJudgement]]
"""Judges whether texts, taken together, support a claim, which may repeat words of the questions `asked`."""


def open_local() -> Verifier:
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


JUDGE = "judge"


async def ask_configured_judge(claims: Sequence[LabelledClaim], settings: Settings) -> tuple[JudgedClaim, ...]:
    """Judge claims by the model of `[evaluation] judge`.

    Raises `ModelUnavailable`, or `EvaluationError` if none is set.
    """
    model = settings.evaluation.judge.over(settings.model)
    if not model.configured:
        raise EvaluationError(
            "No model is configured as judge.", hint="Set [model], or [evaluation] judge, in footnote.toml."
        )
    async with AsyncExitStack() as stack:
        return await judge_by_model(claims, LazyModel(model.plain(), stack), model.max_concurrency)


async def judge_by_model(claims: Sequence[LabelledClaim], model: LLM, at_once: int) -> tuple[JudgedClaim, ...]:
    """Return a model's verdicts, from at most `at_once` calls at a time. An unusable reply is NOT ENOUGH INFO."""

    async def judge(number: int, claim: LabelledClaim) -> JudgedClaim:
        started = perf_counter()
        judgement = await _ask(claim, model, Random(number))
        return JudgedClaim(claim, judgement, (perf_counter() - started) * 1000)

    return await gather_limited(at_once, judge, count(), claims)


async def _ask(claim: LabelledClaim, model: LLM, random: Random) -> ClaimJudgement:
    sentences = collect_sentences(build_evidence(claim.evidence, title=claim.title))
    talk = Conversation(tuple(Turn("user", text) for text in claim.asked or (claim.claim,)))
    prompter = Prompter(model, BudgetMeter(), note=lambda *_: None, now=datetime.now(UTC), random=random)
    try:
        verification = await request_verification(claim.claim, sentences, talk, prompter.ask, student=False)
    except (UnreadableReply, ModelRefused, PromptTooLong) as error:
        return ClaimJudgement(0.0, Verdict.NOT_ENOUGH_INFO, (f"{type(error).__name__}: {error}",))
    return ClaimJudgement(
        float(verification.verdict is Verdict.SUPPORTS), verification.verdict, (verification.reasoning,)
    )
