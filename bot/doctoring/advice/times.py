"""Advice on how long calls and turns may take, and how many calls run at once. Pure."""

import math
from typing import Any

from bot.doctoring.advice.facts import Advice, Facts
from bot.doctoring.figures import turn_seconds

BUSY = 0.05
"""A server that turns away more of the calls than this is asked too many at once."""
UNHURRIED = 0.5
"""Calls and turns that take more than this share of their time are one slow day from being cut off."""


def silence(facts: Facts) -> Advice | None:
    """Give more time to a server that fell silent."""
    silent = sum("timeout_seconds" in fault.hint for one in facts.figures.values() for fault in one.faults)
    if not silent:
        return None
    names = ("timeout_seconds", "first_token_seconds", "idle_seconds")
    longer = {f"model.{name}": 2 * getattr(facts.settings, name) for name in names}
    return Advice(f"{silent} cases got no reply because the server was silent for too long: wait longer.", longer)


def busy(facts: Facts) -> Advice | None:
    """Ask fewer at once where the server turned calls away."""
    retried = sum(one.retried for one in facts.figures.values())
    if facts.at_once == 1 or retried <= BUSY * facts.calls or silence(facts):
        return None
    why = f"{retried} of {facts.calls} calls had to be tried again, as the server was busy: ask fewer at once."
    return Advice(why, {"model.max_concurrency": facts.at_once // 2})


def slow_calls(facts: Facts) -> Advice | None:
    """Give more time to calls that nearly used it up."""
    slowest, settings = max((one.slow_seconds for one in facts.figures.values()), default=0.0), facts.settings
    if slowest <= UNHURRIED * settings.timeout_seconds or silence(facts):
        return None
    wanted = _thrice(slowest)
    longer: dict[str, Any] = {"model.timeout_seconds": wanted}
    if wanted > settings.first_token_seconds:
        longer["model.first_token_seconds"] = wanted
    return Advice(f"Slow calls take {slowest:.0f} s of the {settings.timeout_seconds:g} s that they may.", longer)


def turns(facts: Facts) -> Advice | None:
    """Give more time to whole turns that nearly used it up."""
    seconds = turn_seconds(facts.figures)
    if seconds is None or seconds <= UNHURRIED * facts.turn_limit:
        return None
    refining = sum(facts.figures[name].seconds for name in ("feedback", "refine") if name in facts.figures)
    spared = f" Or spare {refining:.0f} s of it by refine = false." if refining else ""
    why = f"An answer takes about {seconds:.0f} s of the {facts.turn_limit:g} s that it may.{spared}"
    return Advice(why, {"limits.seconds": _thrice(seconds)})


def _thrice(seconds: float) -> int:
    """Return three times so many seconds, in full tens."""
    return 10 * math.ceil(3 * seconds / 10)
