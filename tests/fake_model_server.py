"""The model server of `evaluation.simulated_model` with a script of the test's own, watched; and kinds of servers.

async with serve(lambda request: Reply("Paris.")) as server:
    ...  # server.url, server.requests, server.open, server.disconnects
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from evaluation.simulated_model.chat_protocol import (
    KNOWN_ARGUMENTS,
    ChatRequest,
    Fault,
    Refusal,
    Reply,
    ServerProfile,
)
from evaluation.simulated_model.model_server import ModelServer, Script

_MODELS = ("small-model", "other-model", "thinking-model")
OPENAI = ServerProfile("openai", key="sk-right-0123456789", models=_MODELS, thinkers=("thinking-model",))
AZURE = ServerProfile("azure", key="0123456789abcdef-azure", azure=True, models=("our-deployment",))
VLLM = ServerProfile(
    "vllm",
    models=_MODELS,
    system_role=False,
    too_long=lambda asked, context: Refusal(
        400,
        f"'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context length is {context} "
        f"tokens and your request has {asked} input tokens",
        type="BadRequestError",
    ),
    body=lambda it: {"object": "error", "message": it.message, "type": it.type, "param": None, "code": it.status},
)
LLAMA_CPP = ServerProfile(
    "llama.cpp",
    models=_MODELS,
    formats=("text", "json_object"),
    too_long=lambda asked, context: Refusal(
        400,
        f"the request exceeds the available context size ({asked} > {context}), try increasing it",
        type="exceed_context_size_error",
    ),
    body=lambda it: {"error": {"code": it.status, "message": it.message, "type": it.type}},
)
OLLAMA = ServerProfile(
    "ollama",
    models=_MODELS,
    usage_in_streams=False,
    reasoning_field="reasoning",
    takes=KNOWN_ARGUMENTS - {"stream_options", "reasoning_effort"},
    too_long=lambda asked, context: Refusal(400, f"the input length {asked} exceeds the context length {context}"),
    body=lambda it: {"error": {"message": it.message, "type": "api_error", "param": None, "code": None}},
)


def in_turn(*answers: Reply | Fault) -> Script:
    """Return a script that gives each answer once, and the last for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class FakeModelServer(ModelServer):
    def __init__(self, script: Script, profile: ServerProfile) -> None:
        super().__init__(self._record, profile)
        self.script = script
        self.profile = profile
        self.url = ""
        self.requests: list[ChatRequest] = []
        """Those that the rules passed, in order."""

    def _record(self, request: ChatRequest) -> Reply | Fault:
        self.requests.append(request)
        self.changed.set()
        return self.script(request)

    @property
    def open(self) -> int:
        return self.counts.open

    @property
    def busy(self) -> int:
        return self.counts.busy

    @property
    def busiest(self) -> int:
        return self.counts.busiest

    @property
    def disconnects(self) -> int:
        return self.counts.left

    async def until(self, holds: Callable[["FakeModelServer"], bool]) -> None:
        """Wait until something holds; five seconds at most."""
        async with asyncio.timeout(5):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def serve(script: Script, profile: ServerProfile = OPENAI) -> AsyncIterator[FakeModelServer]:
    """Serve on a free port until the context is left."""
    fake = FakeModelServer(script, profile)
    listening = await asyncio.get_running_loop().create_server(fake.connect, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}" + ("" if profile.azure else "/v1")
    try:
        yield fake
    finally:
        listening.close()
        for connection in list(fake.connections):
            connection.transport.abort()
        await listening.wait_closed()
