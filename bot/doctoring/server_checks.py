"""Checks of servers: does the model's answer, and is the port free that ours is to listen at?"""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace

from bot.doctoring.checks import Finding, Scene
from pipeline.errors import ModelRefused
from pipeline.llm.opening import check
from pipeline.llm.settings import ModelSettings
from pipeline.model import Budget, Message, ModelCall, Spent

PATIENCE = 15.0
"""Seconds that a model's server has to answer a word."""
_TOKENS = 16
_WORD = ModelCall("query", (Message("user", "Say yes."),), max_tokens=_TOKENS)


async def model(scene: Scene) -> Sequence[Finding]:
    """Whether a model is configured, and answers a word. None is needed."""
    values = scene.settings.model
    if not values.configured:
        return (Finding("ok", "Model: none; answers are quoted from the documents."),)
    plain = _impatient(values.plain())
    check(plain)
    async with scene.open_model(plain) as llm:
        with suppress(ModelRefused):  # to refuse is to answer
            await llm.complete(_WORD, Spent(Budget()))
    said = f"Model: {values.names} at {plain.server} answers; `footnote doctor --model` tries how well."
    return (Finding("ok", said),)


async def port(scene: Scene) -> Sequence[Finding]:
    """Whether our server can listen where it is to."""
    host, number = scene.settings.http.host, scene.settings.http.port
    place = f"{host}:{number}"
    if scene.serving:
        return (Finding("ok", f"Port: {place} is the running server's."),)
    try:
        await asyncio.to_thread(_listen, host, number)
    except OSError as error:
        hint = "Stop what listens there, or set another host or port under [http]."
        return (Finding("fail", f"Port: nothing can listen at {place}: {error.strerror or error}.", hint),)
    return (Finding("ok", f"Port: {place} is free."),)


def _impatient(settings: ModelSettings) -> ModelSettings:
    seconds = {name: min(PATIENCE, getattr(settings, name)) for name in ("timeout_seconds", "first_token_seconds")}
    return replace(settings, retries=0, **seconds)


def _listen(host: str, number: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
    with closing(socket.socket(family, kind, protocol)) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tried.bind(address)
        tried.listen()
