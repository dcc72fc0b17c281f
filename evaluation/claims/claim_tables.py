"""Render the tables and the worst mistakes of `claim_report`."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any

from evaluation.reports.printing import format_figure, render_table

LOST_SHARES = {f"{share:.0%}": share for share in (0.01, 0.02, 0.05, 0.1)}
"""Shares of supported claims lost; for each, the share of other claims caught is reported."""
_LONGEST = 240  # characters of a passage or reason
_IN_SAMPLE = (
    "The weights of local were trained on the public sets, so its figures on them are in-sample; "
    "`make train` prints the held-out ones."
)


def render_claim_tables(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return all tables (accuracy, shares caught at each loss, outcomes at the gate, confusion) and notes."""
    measurable = any(map(_has_both, reports[0]["sources"]))
    tables = (_accuracy(reports), _caught(reports) if measurable else "", _releases(reports), _confusion(reports))
    return "\n\n".join(filter(None, (*tables, _notes(reports))))


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
    names = ("set", "claims", "supported", "verifier", "its own decision", "by folds", "by other sets", "AUC")
    rows = [
        (
            source["source"],
            *(f"{source[name]:,}" if name in source else "" for name in ("claims", "supported")),
            verifier,
            _number(source, "decided", "balanced accuracy"),
            _number(source, "by folds"),
            _number(source, "by other sets", "balanced accuracy"),
            _number(source, "auc"),
            *(_number(source, "milliseconds", name, form=".2f") for name in ("p50", "p95")),
        )
        for verifier, source in _by_source(reports)
    ]
    title = (
        "Balanced accuracy by its own verdicts, and by a threshold chosen on other folds of its set or on other sets"
    )
    return f"{title}\n\n{render_table((*names, 'ms p50', 'ms p95'), rows)}"


def _caught(reports: Sequence[Mapping[str, Any]]) -> str:
    own = [f"caught at {share} lost" for share in LOST_SHARES]
    others = [f"{share} by other sets: lost, caught" for share in LOST_SHARES]
    rows = [
        (
            source["source"],
            verifier,
            *(_number(source, "caught at lost", share) for share in LOST_SHARES),
            *(
                ", ".join(_number(source, "lost and caught by other sets", share, name) for name in ("lost", "caught"))
                for share in LOST_SHARES
            ),
        )
        for verifier, source in _by_source(reports)
    ]
    title = "Share of unsupported claims caught: at its own set's threshold, and at one chosen on the other sets"
    return f"{title}\n\n{render_table(('set', 'verifier', *own, *others), rows)}"


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


def _confusion(reports: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (source["source"], report["verifier"], label, *map(str, counts.values()))
        for report in reports
        for source in report["sources"]
        if source["decided"]
        for label, counts in source["decided"]["confusion"].items()
        if sum(counts.values())
    ]
    names = ("set", "verifier", "labelled", "said SUPPORTS", "said REFUTES", "said NOT ENOUGH INFO")
    return f"Labels and verdicts\n\n{render_table(names, rows)}" if rows else ""


def _notes(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return notes on sets with claims of one kind only, and on the sets that `local` was trained on."""
    few = [
        f"{source['source']}: too few claims to measure; most figures need supported ones and others."
        for source in reports[0]["sources"]
        if not _has_both(source)
    ]
    return "\n".join([*few, *([_IN_SAMPLE] if any(report["verifier"] == "local" for report in reports) else [])])


def _has_both(report: Mapping[str, Any]) -> bool:
    """Return whether a set has supported claims and others, which most measures need."""
    return bool(0 < report["supported"] < report["claims"])


def _by_source(reports: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield verifiers and reports by source; if there are several sources, their means follow at the end."""
    for place, _ in enumerate(reports[0]["sources"]):
        for report in reports:
            yield report["verifier"], report["sources"][place]
    if len(reports[0]["sources"]) > 1:
        for report in reports:
            yield report["verifier"], {"source": "mean", **report["mean"]}


def _number(report: Any, *path: str, form: str = ".3f") -> str:
    return format_figure(find_figure(report, path), form)


def find_figure(report: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of names; None if a part of the path is missing."""
    for name in path:
        report = (report or {}).get(name)
    return report
