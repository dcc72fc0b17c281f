"""Fit the weights of the augmenter's learned policy to recorded turns, and write them into the code.

Each turn is run both with and without acquiring evidence. The reward is 1 if the notes contain the known answer, minus
a price for each call. Because both rewards are known, the best policy is a logistic regression: it predicts which
choice was better, and each turn is weighted by the difference of its rewards. The result is always the same for the
same turns.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import pipeline.stages.augmentation as code
from bot.answering.question_answering import answer
from bot.app import App
from bot.types import TurnRequest
from evaluation.answers.question_sets import has_all_strings, read_exam
from evaluation.claims.claim_metrics import assign_folds
from evaluation.simulated_model.scripted_llm import ScriptedLLM, script_stages
from evaluation.simulated_model.transcripts import build_transcript_model, read_documents, read_transcripts
from evaluation.workbench import TERMINAL, open_corpus
from pipeline.kit import Kit, SystemEntry
from pipeline.llm.model import LLM
from pipeline.stages.augmentation.knowledge_consolidator import consolidate
from pipeline.stages.augmentation.policies import EVEN_CHANCE, PolicySigns, read_signs
from pipeline.stages.augmentation.working_memory import WorkingMemory, open_memory
from pipeline.stages.question_analysis import resolve_question
from pipeline.stages.turn_context import prepare_context
from pipeline.types import Conversation, Status, Turn
from storage.language.words import content_terms, words
from tools.training.answer_weights import Floats, fit_judge

FOLDS = 8
PRICE = 0.05  # of one call: twenty calls are worth one more turn whose notes contain the answer
SIGNS = [field.name for field in fields(PolicySigns)]


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The features before the decision, and how useful the notes are without and with acquired evidence."""

    group: str
    signs: PolicySigns
    without: float
    acquired: float

    @property
    def gain(self) -> float:
        """The reward of acquiring evidence, which costs a call, minus the reward of not acquiring any."""
        return self.acquired - self.without - PRICE


def fit_policy(turns: Sequence[RecordedTurn]) -> Floats:
    """Return the bias and the weights of a policy that is fitted to these turns."""
    signs = np.array([astuple(turn.signs) for turn in turns])
    gains = np.array([turn.gain for turn in turns])
    return fit_judge(signs, gains > 0, np.abs(gains))


def acquires(weights: Floats, turn: RecordedTurn) -> bool:
    """Return whether a policy with these weights acquires evidence."""
    score = weights[0] + weights[1:] @ np.array(astuple(turn.signs))
    return bool(1 / (1 + np.exp(-score)) >= EVEN_CHANCE)


def cross_validate(turns: Sequence[RecordedTurn]) -> Mapping[str, Mapping[str, float]]:
    """Return each policy's utility, calls and reward per turn, on groups of turns to which it was not fitted."""
    folds = assign_folds([turn.group for turn in turns], FOLDS)
    learned = []
    for fold in range(FOLDS):
        weights = fit_policy([turn for turn, other in zip(turns, folds, strict=True) if other != fold])
        learned += [(turn, acquires(weights, turn)) for turn, other in zip(turns, folds, strict=True) if other == fold]
    policies = {
        "never": [(turn, False) for turn in turns],
        "always": [(turn, True) for turn in turns],
        "learned": learned,
        "best possible": [(turn, turn.gain > 0) for turn in turns],
    }
    return {name: _measure(decided) for name, decided in policies.items()}


def _measure(decided: Sequence[tuple[RecordedTurn, bool]]) -> Mapping[str, float]:
    utility = float(np.mean([turn.acquired if acts else turn.without for turn, acts in decided]))
    calls = float(np.mean([acts for _, acts in decided]))
    return {"utility": round(utility, 4), "calls": round(calls, 4), "reward": round(utility - PRICE * calls, 4)}


async def record_file(path: Path, home: Path | None) -> list[RecordedTurn]:
    """Run the turns of a file, which has either transcripts with hand-written queries, or questions.

    The query for a question is its own content words and those that it takes from the conversation. Raises
    `UnreadableSet`.
    """
    exam = read_documents(path)
    async with open_corpus(exam.source, exam.corpus, home and home / exam.corpus) as app:
        if path.parent.name != "transcripts":
            return [
                turn
                for question in read_exam(path).questions
                if question.answers and not question.held
                for turn in await _record(
                    app, question.talk, question.answers, _build_simple_model(question.talk), path.stem
                )
            ]
        recorded = list[RecordedTurn]()
        for place, (_, turns) in enumerate(read_transcripts(path)):
            earlier = list[Turn]()
            for turn in turns:
                talk = Conversation((*earlier, Turn("user", turn.question)))
                if turn.answer:
                    model = build_transcript_model(turn)
                    recorded += await _record(app, talk, (turn.answer,), model, f"{path.stem} {place}")
                earlier.append(Turn("user", turn.question))
        return recorded


def _build_simple_model(talk: Conversation) -> ScriptedLLM:
    resolved = resolve_question(talk)
    terms = " ".join(word for word in words(resolved.query) if content_terms(word))
    return script_stages("words", {"query": lambda _: f"Search: yes\nQuery: {terms}\nTime: none"})


async def _record(
    app: App, talk: Conversation, answers: Sequence[Sequence[str]], model: LLM, group: str
) -> list[RecordedTurn]:
    recorded = list[RecordedTurn]()

    async def play(request: Conversation, kit: Kit) -> Status:
        memory = open_memory(await prepare_context(request, kit), kit.limits.looked_up)
        consolidated = await consolidate(memory, kit)
        holds = [float(_holds(notes, answers)) for notes in (memory, consolidated)]
        recorded.append(RecordedTurn(group, read_signs(memory.context, kit.limits.looked_up), *holds))
        return Status.ABSTAINED

    entry = SystemEntry("recorder", "Runs a turn with and without acquired evidence.", play)
    request = TurnRequest(talk.question.text, TERMINAL, earlier=talk.earlier, system=entry.name)
    await answer(replace(app, llm=model, systems={entry.name: entry}), request, lambda _: None)
    return recorded


def _holds(memory: WorkingMemory, answers: Sequence[Sequence[str]]) -> bool:
    notes = " ¶ ".join(note.text for note in memory.evidence)
    return any(has_all_strings(strings, notes) for strings in answers)


def train(
    files: Annotated[list[Path], typer.Argument(help="Files of transcripts, and of questions about handbooks.")],
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, in a folder for each corpus.")] = None,
) -> None:
    """Fit the learned policy.

    The weights in the code were made with

    python -m tools.training.policy_weights evaluation/answers/questions/transcripts/*.json
    evaluation/answers/questions/*_handbook*.json
    """
    turns = [turn for path in files for turn in asyncio.run(record_file(path, home))]
    print(json.dumps({"turns": len(turns), "crossvalidated": cross_validate(turns)}, indent=2))
    if write:
        bias, *weights = (round(float(value), 4) for value in fit_policy(turns))
        fitted = {"bias": bias, "weights": dict(zip(SIGNS, weights, strict=True))}
        path = Path(code.__path__[0]) / "policy_weights.json"
        path.write_text(json.dumps(fitted, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(train)
