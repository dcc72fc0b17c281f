"""Serve a test's own script with the server of `evaluation.simulated_model` and strict rules.

async with serve(lambda request: Reply("Paris.")) as server:
    ...  # server.url, server.requests, server.counts
"""

from contextlib import AbstractAsyncContextManager

from evaluation.simulated_model import model_server
from evaluation.simulated_model.chat_protocol import Fault, Reply
from evaluation.simulated_model.model_server import ModelServer, Script
from tests.fake_model_rules import OPENAI, StrictProfile


def serve(script: Script, profile: StrictProfile = OPENAI) -> AbstractAsyncContextManager[ModelServer]:
    return model_server.serve(script, profile)


def in_turn(*answers: Reply | Fault) -> Script:
    """Return a script that gives each answer once and then repeats the last one."""
    rest = list(answers)
    return lambda _: rest.pop(0) if len(rest) > 1 else rest[0]
