"""Estimate tokens, price them, and hold a turn to its budget. Pure.

Servers' tokenizers differ and are unknown before the call, so tokens are estimated and reserved before a call, and
settled after it; concurrent calls cannot overdraw the budget.
"""

import json
import math
from collections.abc import Mapping

from pipeline.errors import BudgetExceeded
from pipeline.llm.model import BudgetMeter, ModelCall
from pipeline.llm.model_settings import Price

_BYTES_A_TOKEN = 3.5
_A_MESSAGE = 4  # tokens around each message: its role and separators


def estimate_tokens(text: str) -> int:
    return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_A_TOKEN)


def estimate_prompt_tokens(call: ModelCall) -> int:
    """Estimate the tokens that the server reads for a call, its schema included."""
    schema = estimate_tokens(json.dumps(call.schema)) if call.schema else 0
    return schema + sum(estimate_tokens(message.text) + _A_MESSAGE for message in call.messages)


_MILLION = 1_000_000


def price_usage(
    prices: Mapping[str, Price], models: tuple[str, ...], prompt: int, cached: int, completion: int
) -> float | None:
    """Return a call's cost, or None without a price; `prompt` includes `cached`, `completion` the reasoning."""
    price = next((prices[name] for name in models if name in prices), None)
    if price is None:
        return None
    reading = (prompt - cached) * price.prompt + cached * (price.prompt if price.cached is None else price.cached)
    return (reading + completion * price.completion) / _MILLION


_BUDGET_HINT = "ask something narrower, or raise the limits of a turn"


def reserve_budget(spent: BudgetMeter, tokens: int, now: float) -> None:
    """Reserve a call and its estimated tokens. Raises `BudgetExceeded`."""
    remaining_seconds(spent, now)
    budget = spent.budget
    if spent.calls >= budget.calls:
        raise BudgetExceeded(f"the turn has made its {budget.calls} calls to the model", hint=_BUDGET_HINT)
    if spent.tokens + tokens > budget.tokens:
        used = f"the turn has used {spent.tokens} of its {budget.tokens} tokens"
        raise BudgetExceeded(f"{used}, and the next call needs about {tokens}", hint=_BUDGET_HINT)
    spent.calls += 1
    spent.tokens += tokens


def remaining_seconds(spent: BudgetMeter, now: float) -> float:
    """Return the turn's seconds left, infinite without a deadline. Raises `BudgetExceeded` after it."""
    if spent.deadline is None:
        return math.inf
    if now >= spent.deadline:
        raise deadline_error(spent)
    return spent.deadline - now


def deadline_error(spent: BudgetMeter) -> BudgetExceeded:
    return BudgetExceeded(f"the turn has used up its {spent.budget.seconds:g} seconds", hint=_BUDGET_HINT)
