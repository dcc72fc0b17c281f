"""Measure verifiers over labelled claims (`footnote evaluate claims`): figures by source, tables, worst mistakes.

`make train` measures the local check's thresholds on sets and articles that they were not chosen on.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from textwrap import shorten
from typing import Annotated, Any

import numpy as np
import typer

from bot.cli.command_context import find_cli_state
from bot.settings.settings_reader import load_settings
from evaluation import EvaluationError
from evaluation.claims.claim_formats import read_all
from evaluation.claims.claim_metrics import ScoredClaims, balanced_accuracy, roc_auc
from evaluation.claims.labelled_claims import LabelledClaim, UnreadableClaims
from evaluation.claims.verifiers import JUDGE, JudgedClaim, ask_configured_judge, judge_claims, open_local
from evaluation.reports.printing import AsJson, compute_share, format_figure, print_report, render_table, round_figure
from storage.types import Verdict


def report_claims(verifier: str, outcomes: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Return the report on one verifier. Sources are in order of appearance; undefined figures are None."""
    sources: dict[str, list[JudgedClaim]] = {}
    for outcome in outcomes:
        sources.setdefault(outcome.claim.source, []).append(outcome)
    return {"verifier": verifier, "sources": [_source_report(name, judged) for name, judged in sources.items()]}


def list_blind_spots(outcomes: Sequence[JudgedClaim], most: int) -> dict[str, list[dict[str, Any]]]:
    """Return the claims with a wrong verdict: unsupported ones with the highest scores, supported with the lowest."""
    wrong = [
        outcome
        for outcome in sorted(outcomes, key=lambda outcome: outcome.judged.score)
        if (outcome.judged.verdict is Verdict.SUPPORTS) != outcome.claim.supported
    ]
    accepts = [_describe_outcome(outcome) for outcome in reversed(wrong) if not outcome.claim.supported]
    drops = [_describe_outcome(outcome) for outcome in wrong if outcome.claim.supported]
    return {"false accepts": accepts[:most], "false drops": drops[:most]}


def _source_report(name: str, outcomes: Sequence[JudgedClaim]) -> dict[str, Any]:
    here = _scored(outcomes)
    times = [outcome.milliseconds for outcome in outcomes]
    return {
        "source": name,
        "claims": len(outcomes),
        "supported": int(here.supported.sum()),
        "decided": _decided(outcomes),
        "gate": _list_releases(outcomes),
        "auc": round_figure(roc_auc(here)),
        "milliseconds": {name: round(float(np.quantile(times, at)), 3) for name, at in (("p50", 0.5), ("p95", 0.95))},
    }


def _decided(outcomes: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Return the quality of a verifier's verdicts."""
    accepted = np.array([outcome.judged.verdict is Verdict.SUPPORTS for outcome in outcomes])
    supported = _scored(outcomes).supported
    return {
        "balanced accuracy": round_figure(balanced_accuracy(accepted, supported)),
        "accuracy": compute_share(accepted == supported),
        "lost": compute_share(~accepted[supported]),
        "caught": compute_share(~accepted[~supported]),
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
LOCAL = "local"


def claims(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files of labelled claims, or folders; default: $FOOTNOTE_DATA/claims.")
    ] = None,
    verifier: Annotated[
        list[str] | None, typer.Option(help=f"The verifiers: {LOCAL} (default), the gate's check, or {JUDGE}.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="At most this many claims of each set; 0 for all.")] = 0,
    examples: Annotated[int, typer.Option(min=0, help="How many of the worst mistakes of each kind to show.")] = 0,
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
    chosen = sample_claims(read_all(paths or [_default_folder()]), limit)
    if not chosen:
        raise UnreadableClaims("There are no labelled claims there.", hint="Name a file that has some.")
    config = find_cli_state(context).config
    measured = [_measure_verifier(name, chosen, examples, config) for name in verifier or [LOCAL]]
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


def _measure_verifier(name: str, claims: Sequence[LabelledClaim], examples: int, config: Path | None) -> dict[str, Any]:
    if name == JUDGE:
        judging = ask_configured_judge(claims, load_settings(config))
    elif name == LOCAL:
        judging = judge_claims(claims, open_local())
    else:
        raise EvaluationError(f"No verifier is called {name!r}.", hint=f"The verifiers are {LOCAL} and {JUDGE}.")
    print(f"{name}: {len(claims):,} claims", file=sys.stderr)
    outcomes = asyncio.run(judging)
    return {**report_claims(name, outcomes), **({"examples": list_blind_spots(outcomes, examples)} if examples else {})}


def _default_folder() -> Path:
    data = os.environ.get("FOOTNOTE_DATA", "")
    if not data:
        raise UnreadableClaims("No file of labelled claims is named.", hint="Name one, or set FOOTNOTE_DATA.")
    return Path(data) / "claims"


_LONGEST = 240  # characters of a passage or reason
_IN_SAMPLE = (
    "The weights of local were trained on the public sets, so its figures on them are in-sample; "
    "`make train` prints the held-out ones."
)


def render_claim_tables(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return all tables (accuracy, outcomes at the gate) and notes."""
    tables = (_accuracy(reports), _releases(reports), _notes(reports))
    return "\n\n".join(filter(None, tables))


def render_mistakes(verifier: str, blind: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the worst mistakes of a verifier by kind, with passages and reasons."""
    lines = [f"**Where {verifier} is blind**"]
    for kind, mistakes in blind.items():
        lines += ["", f"{kind}:" if mistakes else f"{kind}: none"]
        for mistake in mistakes:
            lines += [
                "- {source} {id}, {label}, scored {score:.3f}: {claim}".format_map(mistake),
                *(f"  | {shorten(passage, _LONGEST)}" for passage in mistake["evidence"]),
                *(f"  because {shorten(reason, _LONGEST)}" for reason in mistake["reasons"]),
            ]
    return "\n".join(lines)


def _accuracy(reports: Sequence[Mapping[str, Any]]) -> str:
    measures = ("balanced accuracy", "lost", "caught")
    rows = [
        (
            source["source"],
            *(f"{source[name]:,}" for name in ("claims", "supported")),
            report["verifier"],
            *(format_figure(source["decided"][name]) for name in measures),
            format_figure(source["auc"]),
            *(format_figure(source["milliseconds"][name], ".2f") for name in ("p50", "p95")),
        )
        for report in reports
        for source in report["sources"]
    ]
    return render_table(("set", "claims", "supported", "verifier", *measures, "AUC", "ms p50", "ms p95"), rows)


def _releases(reports: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            source["source"],
            kind,
            *(f"{value:.3f}" if isinstance(value, float) else f"{value or '–'}" for value in at.values()),
        )
        for report in reports
        for source in report["sources"]
        for kind, at in (source["gate"] or {}).items()
    ]
    names = (
        "set", "kind", "supported", "said", "quoted instead", "kept with a judge who is right", "of these quoted",
        "others", "not said", "said with a judge who passes all", "caught with the one who is right",
    )  # fmt: skip
    return (
        f"Outcomes of claims at the gate, without a model and with one\n\n{render_table(names, rows)}" if rows else ""
    )


def _notes(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return notes on sets with claims of one kind only, and on the sets that `local` was trained on."""
    few = [
        f"{source['source']}: too few claims to measure; most figures need supported ones and others."
        for source in reports[0]["sources"]
        if not 0 < source["supported"] < source["claims"]
    ]
    return "\n".join([*few, *([_IN_SAMPLE] if any(report["verifier"] == "local" for report in reports) else [])])
