"""Reports on verifiers as tables in Markdown, for people; `report` makes what `--json` prints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any

from evaluation.claims.report import LOST

_SHARES = [f"{share:.0%}" for share in LOST]
_LONGEST = 240
_IN_SAMPLE = (
    "The weights of local were made from the public sets, so its figures on them are in-sample; "
    "`footnote evaluate train` prints the held-out ones."
)


def tables(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return all tables: accuracy, what is caught at which loss, and confusion of those that decide; then the notes."""
    parts = [_accuracy(reports), _caught(reports) if _measurable(reports) else [], _confusion(reports), _notes(reports)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def examples(verifier: str, blind: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return where a verifier is blind, an example a paragraph."""
    lines = [f"**Where {verifier} is blind**"]
    for kind, found in blind.items():
        lines += ["", f"{kind}:" if found else f"{kind}: none"]
        lines += [line for each in found for line in _example(each)]
    return "\n".join(lines)


def _accuracy(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    names = (
        "set",
        "claims",
        "supported",
        "verifier",
        "its own decision",
        "by folds",
        "by other sets",
        "AUC",
        "ms p50",
        "ms p95",
    )
    rows = [
        (
            *_counts(found),
            verifier,
            _number(found, "decided", "balanced accuracy"),
            _number(found, "by folds"),
            _number(found, "by other sets", "balanced accuracy"),
            _number(found, "auc"),
            *(_number(found, "milliseconds", name, digits=2) for name in ("p50", "p95")),
        )
        for verifier, found in _by_source(reports)
    ]
    title = (
        "Balanced accuracy as it decides itself, and by a threshold chosen on other folds of its set or on other sets"
    )
    return [title, "", *_markdown(names, rows)]


def _caught(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    own = [f"caught at {share} lost" for share in _SHARES]
    others = [f"{share} by other sets: lost, caught" for share in _SHARES]
    rows = [
        (
            found["source"],
            verifier,
            *(_number(found, "caught at lost", share) for share in _SHARES),
            *(
                f"{_number(found, 'lost and caught by other sets', share, 'lost')}, "
                f"{_number(found, 'lost and caught by other sets', share, 'caught')}"
                for share in _SHARES
            ),
        )
        for verifier, found in _by_source(reports)
    ]
    title = "Share of unsupported claims caught: at its own set's threshold, and at one chosen on the other sets"
    return [title, "", *_markdown(("set", "verifier", *own, *others), rows)]


def _confusion(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (found["source"], each["verifier"], label, *map(str, counts.values()))
        for each in reports
        for found in each["sources"]
        if found["decided"]
        for label, counts in found["decided"]["confusion"].items()
        if sum(counts.values())
    ]
    names = ("set", "verifier", "labelled", "said SUPPORTS", "said REFUTES", "said NOT ENOUGH INFO")
    return ["Labels and verdicts", "", *_markdown(names, rows)] if rows else []


def _notes(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the figures do not tell: sets with claims of one kind alone, and that `local` has seen the sets."""
    few = [
        f"{found['source']}: too few claims to measure; most figures need supported ones and others."
        for found in reports[0]["sources"]
        if not _has_both(found)
    ]
    return [*few, *([_IN_SAMPLE] if any(each["verifier"] == "local" for each in reports) else [])]


def _measurable(reports: Sequence[Mapping[str, Any]]) -> bool:
    return any(map(_has_both, reports[0]["sources"]))


def _has_both(found: Mapping[str, Any]) -> bool:
    """Return whether a set has claims that are supported and others; most measures mean nothing otherwise."""
    return bool(0 < found["supported"] < found["claims"])


def _by_source(reports: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each source's reports together, then the means."""
    for place, _ in enumerate(reports[0]["sources"]):
        for each in reports:
            yield each["verifier"], each["sources"][place]
    if len(reports[0]["sources"]) > 1:
        for each in reports:
            yield each["verifier"], {"source": "mean", **each["mean"]}


def _counts(found: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (f"{found[name]:,}" if name in found else "" for name in ("claims", "supported"))
    return (found["source"], *counts)


def _number(found: Any, *path: str, digits: int = 3) -> str:
    for name in path:
        found = (found or {}).get(name)
    return "–" if found is None else f"{found:.{digits}f}"


def _markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(names)} |", "|" + "---|" * len(names), *(f"| {' | '.join(row)} |" for row in rows)]


def _example(each: Mapping[str, Any]) -> list[str]:
    return [
        f"- {each['source']} {each['id']}, {each['label']}, scored {each['score']:.3f}: {each['claim']}",
        *(f"  | {shorten(passage, _LONGEST)}" for passage in each["evidence"]),
        *(f"  because {shorten(reason, _LONGEST)}" for reason in each["reasons"]),
    ]
