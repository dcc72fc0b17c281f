"""What a turn may still use: reserved before a call, trued up after it, so that calls at once cannot overdraw it."""

import math

from pipeline.errors import BudgetExceeded
from pipeline.model import Spent

_HINT = "ask something narrower, or raise the limits of a turn"


def reserve(spent: Spent, tokens: int, now: float) -> None:
    """Count a call and its tokens, as far as they can be foreseen.

    Raises:
        BudgetExceeded: The call would go beyond what the turn may use; nothing is counted then.
    """
    seconds_left(spent, now)
    budget = spent.budget
    if spent.calls >= budget.calls:
        raise BudgetExceeded(f"the turn has made its {budget.calls} calls to the model", hint=_HINT)
    if spent.tokens + tokens > budget.tokens:
        used = f"the turn has used {spent.tokens} of its {budget.tokens} tokens"
        raise BudgetExceeded(f"{used}, and the next call needs about {tokens}", hint=_HINT)
    spent.calls += 1
    spent.tokens += tokens


def settle(spent: Spent, reserved: int, used: int) -> None:
    """Put what a call really used in the place of what was reserved for it."""
    spent.tokens += used - reserved


def waive(spent: Spent) -> None:
    """Take a call back that was never counted."""
    spent.calls -= 1


def seconds_left(spent: Spent, now: float) -> float:
    """Return how long the turn may still take, infinite without an end. Raises `BudgetExceeded` when that is over."""
    if spent.deadline is None:
        return math.inf
    if now >= spent.deadline:
        raise out_of_time(spent)
    return spent.deadline - now


def out_of_time(spent: Spent) -> BudgetExceeded:
    """Return the error that says the turn's time is over."""
    return BudgetExceeded(f"the turn has used up its {spent.budget.seconds:g} seconds", hint=_HINT)
