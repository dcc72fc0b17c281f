"""A model on a fake server, for tests. The waits between its attempts take no time and are recorded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random

from evaluation.simulated_model.model_server import ModelServer, Script
from pipeline.llm.model import BudgetMeter, ChatMessage, ModelCall, ModelReply, ReplyPiece
from pipeline.llm.model_client import OpenAIModel, open_model
from pipeline.llm.model_settings import ModelSettings, Secret
from tests.fake_model_rules import OPENAI, StrictProfile
from tests.fake_model_server import serve

CALL = ModelCall(
    "draft", (ChatMessage("system", "Answer in one sentence."), ChatMessage("user", "Where is Lake Constance?"))
)
SCHEMA = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
    "additionalProperties": False,
}
SCHEMA_CALL = replace(CALL, schema=SCHEMA)


@dataclass
class OpenedModel:
    server: ModelServer
    model: OpenAIModel
    waits: list[float] = field(default_factory=list)
    spent: BudgetMeter = field(default_factory=BudgetMeter)

    async def complete(self, call: ModelCall = CALL) -> ModelReply:
        return await self.model.complete(call, self.spent)

    async def stream(self, call: ModelCall = CALL) -> tuple[list[str], ModelReply | None]:
        """Return the pieces and the reply."""
        parts = [part async for part in self.model.stream(call, self.spent)]
        pieces = [part.text for part in parts if isinstance(part, ReplyPiece)]
        return pieces, next((part for part in parts if isinstance(part, ModelReply)), None)


def settings_for(server: ModelServer, **changes) -> ModelSettings:
    profile = server.profile
    settings = ModelSettings(
        profile.models[0],
        server.url,
        Secret(profile.key),
        api="azure" if profile.azure else "openai",
        api_version="2024-10-21" if profile.azure else "",
    )
    return replace(settings, **changes)


@asynccontextmanager
async def open_test_model(script: Script, profile: StrictProfile = OPENAI, **changes) -> AsyncIterator[OpenedModel]:
    """Open a model with these settings on a server that follows a script."""
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    async with serve(script, profile) as server:
        settings = settings_for(server, **changes)
        async with open_model(settings, random=Random(1), sleep=note) as model:
            yield OpenedModel(server, model, waits)
