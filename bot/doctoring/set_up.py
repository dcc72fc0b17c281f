"""What is set up, by what can be known without asking anybody: the home, what is indexed, the model that is set."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from bot.app import Records
from bot.model_settings import ModelValues
from bot.settings import Settings
from bot.tables import counted
from pipeline.errors import ModelUnavailable
from pipeline.llm.opening import check


async def found(
    settings: Settings, open_records: Callable[[Settings], AbstractAsyncContextManager[Records]]
) -> dict[str, Any]:
    """Return what is set up, as JSON. Raises `StorageError` where the database cannot be used."""
    corpora = 0, 0
    if settings.database or settings.home.exists():
        async with open_records(settings) as records:
            infos = await records.manifest.corpora()
            corpora = len(infos), sum(info.passages for info in infos)
    return {
        "schema": 1,
        "home": str(settings.home),
        "corpora": corpora[0],
        "passages": corpora[1],
        "model": _model(settings.model) if settings.model.configured else None,
    }


def _model(model: ModelValues) -> dict[str, str]:
    """Return the model and its server, or what its settings lack: such a model asks no server."""
    plain = model.plain()
    try:
        check(plain)
    except ModelUnavailable as error:
        return {"name": model.names, "server": "", "fault": f"{error}; {error.hint}"}
    return {"name": model.names, "server": plain.server, "fault": ""}


def view(facts: dict[str, Any]) -> RenderableType:
    """Show it, and what to do next."""
    nothing = "nothing; `footnote ingest folder PATH --corpus NAME` reads a folder in"
    corpora = "1 corpus" if facts["corpora"] == 1 else f"{facts['corpora']} corpora"
    indexed = f"{counted(facts['passages'], 'passage')} of {corpora}" if facts["passages"] else nothing
    model = "none; answers are quoted from the documents"
    if facts["model"]:
        tried = f"{facts['model']['name']} at {facts['model']['server']}; `footnote doctor --model` tries it"
        model = facts["model"]["fault"] or tried
    lines = ("Settings: can be read", f"Home:     {facts['home']}", f"Indexed:  {indexed}", f"Model:    {model}")
    return Group(*map(Text, lines))
