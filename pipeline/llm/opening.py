"""The way in: opens a model, so that a process that asks none never imports `openai`."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

from pipeline.errors import ModelUnavailable
from pipeline.llm.calling import OpenAIModel
from pipeline.llm.settings import OPENAI_URL, ModelSettings


@asynccontextmanager
async def open_model(
    settings: ModelSettings,
    *,
    random: Random | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[OpenAIModel]:
    """Open the model that is set, and close its connections afterwards. Nothing is sent yet.

    Args:
        settings: Complete: see `with_environment`.
        random: Spreads the waits between tries; None: by chance.
        clock: Tells seconds, as `Spent.deadline` does.
        sleep: Waits for seconds.

    Raises:
        ModelUnavailable: Something is missing in the settings.
    """
    check(settings)
    from pipeline.llm.transport import Transport

    _silence()
    transport = Transport(settings)
    try:
        chance = random or Random()  # noqa: S311 - it spreads waits, and keeps no secret
        yield OpenAIModel(settings, transport.post, random=chance, clock=clock, sleep=sleep)
    finally:
        await transport.close()


def check(settings: ModelSettings) -> None:
    """Raise `ModelUnavailable` unless the settings name a model, its server and a key where one is needed."""
    azure = settings.api == "azure"
    missing = (
        ("name", not settings.name, "OPENAI_MODEL"),
        ("base_url", azure and not settings.base_url, "AZURE_OPENAI_ENDPOINT"),
        ("api_version", azure and not settings.api_version, "OPENAI_API_VERSION"),
        ("api_key", _needs_key(settings), "AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY"),
    )
    for setting, is_missing, variable in missing:
        if is_missing:
            raise ModelUnavailable(
                f"no {setting} is set for the model", hint=f"set {setting} of the model, or {variable}"
            )
    if settings.base_url and not settings.base_url.startswith(("http://", "https://")):
        raise ModelUnavailable("base_url of the model is no address", hint='it must begin with "http://" or "https://"')
    if not all(secret.isascii() and secret.isprintable() and " " not in secret for secret in settings.secrets):
        raise ModelUnavailable(
            "the key of the model cannot be a key", hint="it must be one line of ASCII, without blanks"
        )


def _needs_key(settings: ModelSettings) -> bool:
    known = settings.api == "azure" or (settings.base_url or OPENAI_URL).rstrip("/") == OPENAI_URL
    return known and not settings.secrets


def _silence() -> None:
    """Keep the HTTP libraries from logging addresses and headers, unless the operator asked them to."""
    for name in ("httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)
