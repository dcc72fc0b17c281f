"""Judge labelled claims with the model and prompt that judge dialogues, to measure how reliable their verdicts are."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import count
from random import Random
from time import perf_counter

from bot.settings.tables.settings_tables import Settings
from evaluation import EvaluationError
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import ClaimJudgement, JudgedClaim, build_evidence
from evaluation.workbench import gather_limited
from pipeline.errors import ModelRefused, PromptTooLong, UnreadableReply
from pipeline.llm.model import LLM, BudgetMeter
from pipeline.llm.model_client import LazyModel
from pipeline.prompts.prompter import Prompter
from pipeline.stages.claim_check import request_verification
from pipeline.stages.findings import collect_sentences
from pipeline.types import Conversation, Turn
from storage.types import Verdict

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
