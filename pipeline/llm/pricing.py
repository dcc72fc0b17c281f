"""What a call cost, by the operator's price list. Pure."""

from collections.abc import Mapping

from pipeline.llm.settings import Price

_MILLION = 1_000_000


def cost(
    prices: Mapping[str, Price], models: tuple[str, ...], prompt: int, cached: int, completion: int
) -> float | None:
    """Return what a call cost, in the currency of the list.

    Args:
        prices: By the model's name.
        models: The names that the model goes by, the one it was asked for first.
        prompt: Tokens read, `cached` among them.
        cached: How many of those came from the server's cache.
        completion: Tokens written, thoughts among them.

    Returns:
        The cost; None where none of the names has a price.
    """
    price = next((prices[name] for name in models if name in prices), None)
    if price is None:
        return None
    reading = (prompt - cached) * price.prompt + cached * (price.prompt if price.cached is None else price.cached)
    return (reading + completion * price.completion) / _MILLION
