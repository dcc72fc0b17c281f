"""Import the optional libraries of evaluation, with a hint if one is missing."""

from importlib import import_module
from typing import Any

from evaluation import EvaluationError


def import_measures(name: str) -> Any:
    """Return a module of scipy or sacrebleu. Raises `EvaluationError` if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise EvaluationError(f"{package} is not installed.", hint="Run `make evaluation`, and try again.") from error
