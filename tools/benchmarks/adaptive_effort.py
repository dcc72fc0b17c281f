"""Ask questions while a simulated model's server slows down and recovers, and show what effort each turn took and why.

    python -m tools.benchmarks.adaptive_effort
    python -m tools.benchmarks.adaptive_effort --slow-seconds 0 --effort quick    always the same

The server has its usual pace, then one at which all calls share little, then the usual one; then it refuses a third of
the tries, and recovers.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.answering.question_answering import answer
from bot.app import App
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import LimitSettings, Settings
from bot.types import TurnRequest
from bot.wiring import open_app
from evaluation.answers.question_sets import read_exam
from evaluation.simulated_model.chat_protocol import ChatRequest, Fault, Reply
from evaluation.simulated_model.model_pace import FaultRates, ServerPace, SimulatedModel
from evaluation.simulated_model.model_server import ModelServer, PacedModel
from evaluation.workbench import EXAMPLE_QUESTIONS, TERMINAL, refresh_quietly, render_table
from pipeline.kit import EFFORTS, Effort

USUAL = SimulatedModel()
SLOW = SimulatedModel(ServerPace(out=20.0, total_out=60.0, total_prompt=1_000.0))
BUSY = SimulatedModel(faults=FaultRates(busy=0.35))
COLUMNS = ("server", "effort", "seconds", "calls", "prompt tokens", "lowered because", "a call's seconds", "refused")


@dataclass
class SwitchedModel:
    """The script of a server whose pace changes."""

    now: PacedModel

    def __call__(self, request: ChatRequest) -> Reply | Fault:
        return self.now(request)


async def measure(
    slow_seconds: float, effort: Effort, phases: Sequence[tuple[str, SimulatedModel, int]]
) -> list[tuple[object, ...]]:
    exam = read_exam(EXAMPLE_QUESTIONS)
    script = SwitchedModel(PacedModel(USUAL))
    server = ModelServer(script)
    listening = await asyncio.get_running_loop().create_server(server.connect, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    model = ModelValues(name="simulated", base_url=url, structured="text", slow_seconds=slow_seconds)
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), model=model, effort=effort, limits=LimitSettings(seconds=600))
        async with open_app(settings) as app:
            await refresh_quietly(exam.source, exam.corpus, app)
            questions = iter([posed.text for posed in exam.questions])
            rows = []
            for name, simulated, count in phases:
                script.now = PacedModel(simulated)
                rows += [await _run_turn(app, next(questions), name) for _ in range(count)]
    listening.close()
    return rows


async def _run_turn(app: App, question: str, name: str) -> tuple[object, ...]:
    done = await answer(app, TurnRequest(question, TERMINAL, system="wikichat-fast"), lambda _: None)
    opened = (await app.audit.turn(done.answer_id))[0].body
    lowered: dict[str, Any] = opened.get("lowered") or {}
    why = tuple(lowered.get(key, "") for key in ("because", "call_seconds", "refused"))
    used = done.usage
    return (name, done.effort, f"{done.seconds:.1f}", used.llm_calls, f"{used.prompt_tokens:,}", *why)


def main() -> None:
    """Measure, and print a row a turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow-seconds", type=float, default=ModelValues().slow_seconds)
    parser.add_argument("--effort", choices=EFFORTS, default="normal")
    given = parser.parse_args()
    phases = (("usual", USUAL, 3), ("slow", SLOW, 8), ("usual", USUAL, 9), ("busy", BUSY, 5), ("usual", USUAL, 9))
    before = os.getloadavg()[0]
    print(render_table(COLUMNS, asyncio.run(measure(given.slow_seconds, given.effort, phases))))
    print(f"\nload {before:.1f} before, {os.getloadavg()[0]:.1f} after, of {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
