"""The figures of systems side by side, as text. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluation.speed.turn.figures import MARKS, WIKICHAT_2_1

_ROWS: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("first visible checked sentence, over the end of a plain call", "first_ratio", "{:.2f}".format),
    ("the same by the pace of server and index alone", "first_ratio_without_ours", "{:.2f}".format),
    ("end, over the end of a plain call", "end_ratio", "{:.2f}".format),
    ("the same by the pace of server and index alone", "end_ratio_without_ours", "{:.2f}".format),
    ("seconds to the first sentence", "first_seconds", "{:.2f}".format),
    ("seconds to the end", "end_seconds", "{:.2f}".format),
    ("rounds: seconds of a server that takes one for any reply", "rounds", "{:.0f}".format),
    ("the same with ours", "seconds_in_rounds", "{:.2f}".format),
    ("calls", "calls", "{:.0f}".format),
    ("prompt tokens", "prompt_tokens", "{:,.0f}".format),
    ("of these a stable prefix", "stable_share", "{:.0%}".format),
    ("reply tokens", "reply_tokens", "{:,.0f}".format),
    ("passages sent again in one round", "sent_again", "{:.0f}".format),
    ("verdicts after the draft began", "late_verdicts", "{:.0f}".format),
    ("verdicts", "verdicts", "{:.0f}".format),
)


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table: a row a figure, a column a system, and last WikiChat 2.1."""
    names = [*(str(one["system"]) for one in found), "WikiChat 2.1"]
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for label, key, shown in _ROWS:
        cells = [_cell(one, key, shown) for one in (*found, WIKICHAT_2_1)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(one: Mapping[str, Any], key: str, shown: Callable[[float], str]) -> str:
    value = one.get(key, math.nan)
    if isinstance(value, float) and math.isnan(value):
        return ""
    said = shown(value)
    if key == "end_ratio" and "end_ratio_refined" in one:
        said += f" ({one['end_ratio_refined']:.2f} refined)"
    if key not in one.get("marks", {}):
        return said
    way, mark = MARKS[one["system"]][key]
    return f"{said} ({'keeps' if one['marks'][key] else 'MISSES'} {way} {shown(mark)})"


def stages(one: Mapping[str, Any]) -> str:
    """Return what each stage of a system sends in a turn."""
    lines = [
        f"{one['system']}: prompt tokens of a turn by stage",
        "",
        "| stage | calls | tokens | stable prefix | of these |",
        "|---|---|---|---|---|",
    ]
    for name, sent in one["stages"].items():
        part = sent.stable / sent.tokens if sent.tokens else 0.0
        lines.append(f"| {name} | {sent.calls} | {sent.tokens:,} | {sent.stable:,} | {part:.0%} |")
    return "\n".join(lines)


def parts(one: Mapping[str, Any]) -> str:
    """Return where the seconds to the end, and to the first sentence, of a system went."""
    lines = []
    for key, until in (("to_the_first", "first sentence"), ("to_the_end", "end")):
        ways = one[key]
        ours = {name: seconds for name, seconds in ways.items() if name not in {"server", "search"}}
        detail = ", ".join(f"{name} {seconds * 1000:.0f}" for name, seconds in ours.items())
        lines.append(
            f"{one['system']}, to the {until}: server {ways.get('server', math.nan):.2f} s, "
            f"index {ways.get('search', math.nan):.2f} s, ours {sum(ours.values()) * 1000:.0f} ms ({detail})"
        )
    return "\n".join(lines)
