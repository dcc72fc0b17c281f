"""Add options from a table to a command's signature, from which typer reads them."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def list_parameters(options: Mapping[str, tuple[Any, Any]]) -> list[inspect.Parameter]:
    """Return a keyword-only parameter for each option; `options` maps its name to its annotation and default."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]


def set_parameters(command: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> None:
    signature = inspect.Signature([*parameters])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
