"""The setting of the scenes: the example company's handbook, and a model with scripted replies."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from bot.app import App
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import Settings
from bot.wiring import open_app
from examples.scripted_model import CLAIMS, LABEL, build_scripted_model
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.sources.folder import FolderSource
from pipeline.llm.model import LLM, BudgetMeter, ModelCall, ModelReply

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
ADDRESS = "https://handbook.tolliver-ebb.example/"
MEALS = "What is the meal allowance on business trips?"
GYM = "Is there a gym in the Cobh office?"
PARKING = "How many parking places are there in Cobh?"
STATEMENTS = (
    "Hi all! No receipt is needed for amounts under 15 euros. Laptops are replaced every five years. "
    "The Bergen office has a sauna."
)


class OrderedModel:
    """The scripted model, which judges given claims in a fixed order, so that pictures stay the same."""

    def __init__(self, order: Sequence[str] = tuple(CLAIMS)) -> None:
        """Take the claims in the order of their verdicts."""
        self._judged = {claim: asyncio.Event() for claim in order}
        self._scripted = build_scripted_model()
        self.structured, self.busy, self.stream = self._scripted.structured, self._scripted.busy, self._scripted.stream

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        """Return the stage's scripted reply, once the claims before it are judged. Raises `HandbookChanged`."""
        if call.stage != "verify":
            return await self._scripted.complete(call, spent)
        claim = call.messages[-1].text.rpartition("Claim: ")[2]
        for before in takewhile(lambda one: one != claim, self._judged):
            await self._judged[before].wait()
        if claim not in self._judged:
            await asyncio.Event().wait()
        reply = await self._scripted.complete(call, spent)
        self._judged[claim].set()
        return reply


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[App]:
    """Read the handbook into a home, and open it. Raises `StorageError`."""
    corpus = {"name": "handbook", "visible_to": ["*"]}
    channels = [{"id": "slack:T1/C1", "ask": ["slack:T1/U2"]}, {"id": "discord:301/201", "ask": ["discord:301/102"]}]
    values = {"home": home, "corpus": [corpus], "channel": channels, "slack": {"admins": ["slack:T1/U9"]}}
    async with open_app(Settings.model_validate(values)) as app:
        await refresh_corpus(
            FolderSource(HANDBOOK, url_base=ADDRESS), "handbook", app.passages, progress=lambda _: None
        )
        yield app


def thinking(app: App, llm: LLM | None) -> App:
    """Return the app with a model, if one is given."""
    if not llm:
        return app
    # Nothing is sent to this address, which no host has: the model that would be asked there is replaced.
    model = ModelValues(name=LABEL, base_url="http://scripted.invalid")
    # The scripted model knows the replies to this system's stages alone.
    changes = {"model": model, "system": "wikichat"}
    return replace(app, settings_source=app.settings.model_copy(update=changes), llm=llm)
