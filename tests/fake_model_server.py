"""The model server of `evaluation.simulated_model` with a script of the test's own, watched.

async with serve(lambda request: Reply("Paris.")) as server:
    ...  # server.url, server.requests, server.open, server.disconnects
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from evaluation.simulated_model.chat_protocol import ChatRequest, Fault, Reply
from evaluation.simulated_model.model_server import ModelServer, Script
from tests.fake_model_rules import OPENAI, StrictProfile


def in_turn(*answers: Reply | Fault) -> Script:
    """Return a script that gives each answer once, and the last for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class FakeModelServer(ModelServer):
    def __init__(self, script: Script, profile: StrictProfile) -> None:
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
        """Wait until a condition holds, for a minute at most."""
        async with asyncio.timeout(60):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def serve(script: Script, profile: StrictProfile = OPENAI) -> AsyncIterator[FakeModelServer]:
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
