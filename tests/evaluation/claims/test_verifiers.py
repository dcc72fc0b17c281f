"""The verifiers, with sentences from this file."""

import os
from pathlib import Path

import pytest

from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import (
    ClaimJudgement,
    judge_claims,
    open_local,
    pin_to_one_core,
)
from storage.types import Verdict

SUPPORTS, REFUTES, UNKNOWN = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO


def claim(label: Verdict = SUPPORTS) -> LabelledClaim:
    return LabelledClaim("1", "s", "Geese fly south.", ("Geese fly south in autumn.",), label, "g")


async def test_local_check_returns_a_verdict(handbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_HOME", str(handbook))
    judge = open_local()

    assert (await judge("Geese fly.", ["Geese fly."])).verdict is SUPPORTS
    refused = await judge("Geese sing.", ["Stones are heavy."])
    assert refused.verdict is not SUPPORTS
    assert refused.reasons


async def test_claims_are_judged_in_order_and_timed() -> None:
    read: list[tuple[str, tuple[str, ...]]] = []

    async def judge(text: str, evidence: tuple[str, ...], *, asked: tuple[str, ...]) -> ClaimJudgement:
        read.append((text, asked))
        return ClaimJudgement(len(evidence), UNKNOWN)

    outcomes = await judge_claims([claim(), claim()], judge)

    assert [asked for _, asked in read] == [()] * 3
    assert [outcome.judged.score for outcome in outcomes] == [1, 1]
    assert all(outcome.milliseconds >= 0 for outcome in outcomes)
    assert await judge_claims([], judge) == ()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot bind a process to a core")
def test_pinning_to_one_core_is_undone() -> None:
    before = os.sched_getaffinity(0)

    with pin_to_one_core():
        bound = os.sched_getaffinity(0)

    assert len(bound) == 1
    assert os.sched_getaffinity(0) == before
