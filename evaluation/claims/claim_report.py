"""Measure verifiers over labelled claims (`footnote evaluate claims`): figures by source, tables, worst mistakes.

A threshold "by other sets" is chosen on the sources of all other families, and a threshold "by folds" on the other
folds of the same set. So neither is fitted to the claims that it is measured on. Only a threshold "of its own set" is.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import typer

from bot.cli.command_context import find_cli_state
from bot.settings.settings_reader import load_settings
from evaluation.claims.claim_formats import CLAIM_FORMATS, read_all
from evaluation.claims.claim_metrics import (
    ScoredClaims,
    balanced_accuracy,
    count_confusions,
    cross_validate_accuracy,
    find_best_threshold,
    find_threshold_losing,
    measure_threshold,
    roc_auc,
)
from evaluation.claims.claim_tables import LOST_SHARES, find_figure, render_claim_tables, render_mistakes
from evaluation.claims.judge_verifier import JUDGE, ask_configured_judge
from evaluation.claims.labelled_claims import LabelledClaim, UnreadableClaims
from evaluation.claims.verifiers import VERIFIERS, JudgedClaim, find_verifier, judge_claims
from evaluation.reports.printing import AsJson, compute_mean, compute_share, print_report, round_figure
from storage.types import Verdict


def report_claims(verifier: str, outcomes: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Return the report on one verifier. Sources are in order of appearance; undefined figures are None."""
    sources: dict[str, list[JudgedClaim]] = {}
    for outcome in outcomes:
        sources.setdefault(outcome.claim.source, []).append(outcome)
    reports = [_source_report(name, sources) for name in sources]
    return {"verifier": verifier, "sources": reports, "mean": _mean(reports)}


def list_blind_spots(outcomes: Sequence[JudgedClaim], most: int) -> dict[str, list[dict[str, Any]]]:
    """Return the unsupported claims with the highest scores, and the supported claims with the lowest.

    If the verifier gives verdicts, only claims with a wrong verdict are listed.
    """
    wrong = [
        outcome
        for outcome in sorted(outcomes, key=lambda outcome: outcome.judged.score)
        if outcome.judged.verdict is None or (outcome.judged.verdict is Verdict.SUPPORTS) != outcome.claim.supported
    ]
    accepts = [_describe_outcome(outcome) for outcome in reversed(wrong) if not outcome.claim.supported]
    drops = [_describe_outcome(outcome) for outcome in wrong if outcome.claim.supported]
    return {"false accepts": accepts[:most], "false drops": drops[:most]}


def _source_report(name: str, sources: Mapping[str, Sequence[JudgedClaim]]) -> dict[str, Any]:
    outcomes = sources[name]
    family = outcomes[0].claim.family
    others = [_scored(rest) for rest in sources.values() if rest[0].claim.family != family]
    here = _scored(outcomes)
    own = {share: point["caught"] for share, point in _threshold_curve(here, [here] if here.both else []).items()}
    times = [outcome.milliseconds for outcome in outcomes]
    return {
        "source": name,
        "claims": len(outcomes),
        "supported": int(here.supported.sum()),
        "decided": _decided(outcomes),
        "gate": _list_releases(outcomes),
        "by folds": round_figure(cross_validate_accuracy(here, [outcome.claim.group for outcome in outcomes])),
        "by other sets": _best_of_others(here, [other for other in others if other.both]),
        "auc": round_figure(roc_auc(here)),
        "caught at lost": own,
        "lost and caught by other sets": _threshold_curve(here, [other for other in others if len(other.kept)]),
        "milliseconds": {name: round(float(np.quantile(times, at)), 3) for name, at in (("p50", 0.5), ("p95", 0.95))},
    }


def _decided(outcomes: Sequence[JudgedClaim]) -> dict[str, Any] | None:
    """Return the quality of the verdicts that a verifier gives; None if it gives only scores."""
    verdicts = [outcome.judged.verdict for outcome in outcomes if outcome.judged.verdict is not None]
    if len(verdicts) < len(outcomes):
        return None
    accepted = np.array([verdict is Verdict.SUPPORTS for verdict in verdicts])
    supported = _scored(outcomes).supported
    return {
        "balanced accuracy": round_figure(balanced_accuracy(accepted, supported)),
        "accuracy": compute_share(accepted == supported),
        "lost": compute_share(~accepted[supported]),
        "caught": compute_share(~accepted[~supported]),
        "confusion": count_confusions([outcome.claim.label for outcome in outcomes], verdicts),
    }


def _list_releases(outcomes: Sequence[JudgedClaim]) -> dict[str, Any] | None:
    """Return what happens to the claims at the gate, in total and by kind; None if the verifier is not the gate's.

    Without a model, doubtful claims are withheld or replaced by quotations. With a model, it decides on all claims
    except those that rules refute or that are verbatim in a passage.
    """
    if any(outcome.judged.sure is None for outcome in outcomes):
        return None
    kinds = sorted({outcome.claim.kind for outcome in outcomes} - {""})
    chosen = {
        "all": outcomes,
        **{kind: [outcome for outcome in outcomes if outcome.claim.kind == kind] for kind in kinds},
    }
    return {kind: _count_releases(listed) for kind, listed in chosen.items()}


def _count_releases(outcomes: Sequence[JudgedClaim]) -> dict[str, Any]:
    true = [outcome.judged for outcome in outcomes if outcome.claim.supported]
    false = [outcome.judged for outcome in outcomes if not outcome.claim.supported]
    return {
        "supported": len(true),
        "said": compute_share(judged.sure for judged in true),
        "quoted": compute_share((judged.judged or judged.quoted) and not judged.sure for judged in true),
        "said by a judge": compute_share(judged.judged or judged.quoted or judged.sure for judged in true),
        "quoted with a judge": compute_share(judged.quoted for judged in true),
        "others": len(false),
        "caught": compute_share(not judged.sure for judged in false),
        "passed by a lenient judge": compute_share(
            judged.judged or (judged.sure and not judged.quoted) for judged in false
        ),
        "caught by a judge": compute_share(judged.judged or judged.quoted or not judged.sure for judged in false),
    }


def _best_of_others(here: ScoredClaims, others: Sequence[ScoredClaims]) -> dict[str, Any] | None:
    if not others:
        return None
    threshold = find_best_threshold(others)
    accuracy = balanced_accuracy(here.scores >= threshold, here.supported)
    return {"threshold": round_figure(threshold), "balanced accuracy": round_figure(accuracy)}


def _threshold_curve(here: ScoredClaims, others: Sequence[ScoredClaims]) -> dict[str, Any]:
    """Return, for each share, the effect here of the threshold that loses this share of others' supported claims."""
    if not others:
        return {}
    points = {
        name: measure_threshold(here, find_threshold_losing(others, share)) for name, share in LOST_SHARES.items()
    }
    return {
        share: {name: round_figure(value) for name, value in asdict(point).items()}
        for share, point in points.items()
        if point
    }


def _mean(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean of each figure over the sources that have it; all sources count equally."""

    def over(*path: str) -> float | None:
        return round_figure(compute_mean(find_figure(report, path) for report in reports))

    return {
        "decided": {name: over("decided", name) for name in ("balanced accuracy", "lost", "caught")},
        "by folds": over("by folds"),
        "by other sets": {"balanced accuracy": over("by other sets", "balanced accuracy")},
        "auc": over("auc"),
        "caught at lost": {share: over("caught at lost", share) for share in LOST_SHARES},
        "lost and caught by other sets": {
            share: {name: over("lost and caught by other sets", share, name) for name in ("lost", "caught")}
            for share in LOST_SHARES
        },
    }


def _scored(outcomes: Sequence[JudgedClaim]) -> ScoredClaims:
    scores = np.array([outcome.judged.score for outcome in outcomes], dtype=np.float64)
    return ScoredClaims(scores, np.array([outcome.claim.supported for outcome in outcomes], dtype=bool))


def _describe_outcome(outcome: JudgedClaim) -> dict[str, Any]:
    claim, judged = outcome.claim, outcome.judged
    return {
        "source": claim.source,
        "id": claim.id,
        "claim": claim.claim,
        "evidence": list(claim.evidence),
        "label": claim.label.value,
        "score": round_figure(judged.score),
        "reasons": list(judged.reasons),
    }


_SEED = 7


def claims(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files of labelled claims, or folders; default: $FOOTNOTE_DATA/claims.")
    ] = None,
    verifier: Annotated[
        list[str] | None, typer.Option(help=f"The verifiers: {', '.join(VERIFIERS)}; {JUDGE} only if named.")
    ] = None,
    form: Annotated[
        str, typer.Option(help=f"The files' format, if their first row does not show it: {', '.join(CLAIM_FORMATS)}.")
    ] = "",
    limit: Annotated[int, typer.Option(min=0, help="At most this many claims of each set; 0 for all.")] = 0,
    examples: Annotated[int, typer.Option(min=0, help="How many of the worst mistakes of each kind to show.")] = 0,
    titles: Annotated[bool, typer.Option("--titles", help="Add the page's title above each passage.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure how well verifiers separate supported claims from others.

    Your own claims go into a file of JSON lines, each {"claim": "The office opens at nine.", "evidence": ["a passage",
    "another"], "label": "SUPPORTS"}; the label may be SUPPORTS, REFUTES or NOT ENOUGH INFO, and claims that share a
    "group" are kept together. The published files of FEVER-symmetric, Fool Me Twice, WiCE, BEGIN, FaithDial's audit,
    Factcheck-GPT and QAGS can also be read.

    `judge` is the model that judges dialogues: that of [evaluation] judge, or of [model].

    Example: footnote evaluate claims ours.jsonl --verifier local --examples 5
    """
    chosen = sample_claims(read_all(paths or [_default_folder()], form), limit)
    if not chosen:
        raise UnreadableClaims("There are no labelled claims there.", hint="Name a file that has some.")
    offered = [add_title(claim) for claim in chosen] if titles else chosen
    config = find_cli_state(context).config
    measured = [_measure_verifier(name, offered, examples, config) for name in verifier or VERIFIERS]
    mistakes = (f"\n{render_mistakes(report['verifier'], report['examples'])}" for report in measured if examples)
    print_report({"verifiers": measured}, "\n".join((render_claim_tables(measured), *mistakes)), as_json=as_json)


def sample_claims(claims: Sequence[LabelledClaim], limit: int) -> Sequence[LabelledClaim]:
    """Return at most `limit` random claims of each source, in their order; 0 returns all."""
    if not limit:
        return claims
    rng = Random(_SEED)
    sources = dict.fromkeys(claim.source for claim in claims)
    by_source = [[place for place, claim in enumerate(claims) if claim.source == source] for source in sources]
    chosen = {place for places in by_source for place in rng.sample(places, min(limit, len(places)))}
    return [claim for place, claim in enumerate(claims) if place in chosen]


def add_title(claim: LabelledClaim) -> LabelledClaim:
    """Return a claim with the title of its page above each passage, if the title is known."""
    if not claim.title:
        return claim
    return replace(claim, evidence=tuple(f"{claim.title}\n\n{passage}" for passage in claim.evidence))


def _measure_verifier(name: str, claims: Sequence[LabelledClaim], examples: int, config: Path | None) -> dict[str, Any]:
    if name == JUDGE:
        judging = ask_configured_judge(claims, load_settings(config))
    else:
        open_verifier = find_verifier(name)
        judging = judge_claims(claims, open_verifier(claims))
    print(f"{name}: {len(claims):,} claims", file=sys.stderr)
    outcomes = asyncio.run(judging)
    return {**report_claims(name, outcomes), **({"examples": list_blind_spots(outcomes, examples)} if examples else {})}


def _default_folder() -> Path:
    data = os.environ.get("FOOTNOTE_DATA", "")
    if not data:
        raise UnreadableClaims("No file of labelled claims is named.", hint="Name one, or set FOOTNOTE_DATA.")
    return Path(data) / "claims"
