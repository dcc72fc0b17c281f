"""Judge the turns of a run, and store each judgement as soon as it is made."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random

from bot.app import App
from evaluation.dialogues.dialogue_run import build_history, stop_run
from evaluation.dialogues.dialogue_types import Dialogue, JudgedTurn, RunManifest
from evaluation.dialogues.judging.judge import JudgeCalls, judge_turn, usage_fields
from evaluation.dialogues.prompts import PROMPTS
from evaluation.dialogues.run_folder import RunFolder, TurnKey, list_keys
from evaluation.workbench import gather_limited
from pipeline.errors import BudgetExceeded, ModelUnavailable, SearchUnavailable
from pipeline.gate import Recorder
from pipeline.llm.model import LLM, Budget, BudgetMeter
from pipeline.prompts.prompter import Prompter
from storage.errors import StorageError
from storage.types import Hit, SearchQuery

JUDGE_BUDGET = Budget(calls=400, tokens=2_000_000, seconds=3_600)  # of one turn


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """Judges those turns of a run that have no judgement yet."""

    app: App
    folder: RunFolder
    manifest: RunManifest
    judge: LLM
    report: Callable[[JudgedTurn], None]  # receives each judgement
    at_once: int = 4

    async def judge_all(self) -> None:
        """Judge the remaining turns. Raises `EvaluationError` if the model or the search cannot be reached."""
        dialogues = await asyncio.to_thread(self.folder.read_dialogues)
        known = await asyncio.to_thread(self.folder.read_judgements)
        by_id = {dialogue.id: dialogue for dialogue in dialogues}

        async def judge(key: TurnKey) -> None:
            judged = await self._judge(by_id[key[0]], key[1])
            await asyncio.to_thread(self.folder.append_judgement, key, judged)
            self.report(judged)

        await gather_limited(self.at_once, judge, [key for key in list_keys(dialogues) if key not in known])

    async def _judge(self, dialogue: Dialogue, number: int) -> JudgedTurn:
        turn = dialogue.turns[number - 1]
        recorder = Recorder(self._search, report=lambda _: None)
        prompter = Prompter(
            self.judge,
            BudgetMeter(JUDGE_BUDGET),
            note=recorder.note,
            now=datetime.now(self.app.settings.zone),
            random=Random(f"{self.manifest.seed} {dialogue.id} {number} judge"),
            folder=PROMPTS,
        )

        async def find(text: str, k: int) -> tuple[Hit, ...]:
            return await recorder.search(SearchQuery(text), k)

        earlier = build_history(replace(dialogue, turns=dialogue.turns[: number - 1]))
        try:
            judged = await judge_turn(earlier, turn, JudgeCalls(prompter.ask, find, []))
        except (ModelUnavailable, SearchUnavailable, BudgetExceeded, StorageError) as error:
            raise stop_run(error) from error
        return replace(judged, **usage_fields(recorder.usage))

    async def _search(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        return await self.app.passages.search(query.text, [corpus.name for corpus in self.manifest.corpora], k)
