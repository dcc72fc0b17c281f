"""Views of results: Rich renderables for people, JSON documents for programs. Each is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.cli.rendering import answer_view as answer_view
    from bot.cli.rendering import audit_view as audit_view
    from bot.cli.rendering import corpus_view as corpus_view
    from bot.cli.rendering import json_documents as json_documents
    from bot.cli.rendering import proof_view as proof_view
    from bot.cli.rendering import record_documents as record_documents
    from bot.cli.rendering import record_view as record_view
    from bot.cli.rendering import turn_progress as turn_progress


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
