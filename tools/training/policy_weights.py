"""Fit the weights of the augmenter's learned policy to recorded turns, and write them into the code.

Each turn of a file is run both with and without acquiring evidence. The reward is 1 if the notes contain the known
answer, minus a price for each call. Because both rewards are known, the best policy is a logistic regression: it
predicts which choice was better, and each turn is weighted by the difference of its rewards. The result is always the
same for the same turns.

Turns that users rated (up or down, not from 1 to 5 in a study) have a reward for one choice only, the one that was
made. If the bot explored (`[limits] explore`), each choice had a known probability, and weighting by its inverse makes
these turns representative of both choices. LLM-Augmenter trains a T5 by REINFORCE instead.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from itertools import compress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import pipeline.stages.augmentation as code
from bot.answering.question_answering import answer
from bot.app import App
from bot.settings.settings_reader import load_settings
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest
from bot.wiring import open_records
from evaluation import EvaluationError
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
from storage.record.record_search import RecordFilter
from storage.types import EntryKind, LogEntry
from tools.training.answer_weights import Floats, fit_judge

FOLDS = 8
PRICE = 0.05  # of one call: twenty calls are worth one more turn whose notes contain the answer
SIGNS = [field.name for field in fields(PolicySigns)]
REWARDS = {"up": 1.0, "down": 0.0, "missed": -1.0}
"""A user's reward. A thumbs-down may be about the wording; "this was not what I asked" is about the notes."""
LEAST_EXPLORED, LEAST_ASKERS = 50, 5  # rated turns whose decision was reversed, and askers: fewer teach little
CLEAR = 1.645  # standard errors by which a gain must exceed 0, so that chance shows it in one case of twenty
PAGE = 200


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


@dataclass(frozen=True, slots=True)
class RatedTurn:
    """The features before a decision, the choice, its probability, and the mean reward by the users who rated it."""

    group: str  # who asked
    signs: PolicySigns
    acquired: bool
    propensity: float
    rating: float

    @property
    def reward(self) -> float:
        return self.rating - PRICE * self.acquired

    @property
    def explored(self) -> bool:
        """Whether the policy's decision was reversed."""
        return self.propensity < EVEN_CHANCE


def fit_policy(turns: Sequence[RecordedTurn], rated: Sequence[RatedTurn] = ()) -> Floats:
    """Return the bias and the weights of a policy that is fitted to these turns.

    A rated turn weighs less than one whose gain is known, by the ratio of their mean squares: a rating is noisy.
    """
    signs = np.array([*(astuple(turn.signs) for turn in turns), *(astuple(turn.signs) for turn in rated)])
    gains, estimates = np.array([turn.gain for turn in turns]), np.multiply(*_weigh(rated))
    if rated:
        gains = np.append(gains, estimates * (np.mean(gains**2) if turns else 1.0) / np.mean(estimates**2))
    return fit_judge(signs, gains > 0, np.abs(gains))


def _weigh(rated: Sequence[RatedTurn]) -> tuple[Floats, Floats]:
    """Return how much better than average acquiring evidence was in each turn, and the inverse propensities."""
    inverse = np.array([1 / turn.propensity for turn in rated])
    rewards = np.array([turn.reward for turn in rated])
    average = rewards @ inverse / max(inverse.sum(), 1.0)
    return (rewards - average) * np.array([1 if turn.acquired else -1 for turn in rated]), inverse


def estimate_gain(rated: Sequence[RatedTurn], choices: Sequence[bool]) -> Mapping[str, float]:
    """Return the reward per turn that these choices gain over those of the policy in use, with its standard error."""
    better, inverse = _weigh(rated)
    used = np.array([turn.acquired != turn.explored for turn in rated])
    gains = better * inverse * (np.array(choices, float) - used)
    error = float(gains.std() / np.sqrt(len(rated)))
    return {"gain": round(float(gains.mean()), 4), "error": round(error, 4)}


def compare_policies(rated: Sequence[RatedTurn], turns: Sequence[RecordedTurn]) -> Mapping[str, Mapping[str, float]]:
    """Return each policy's gain over the one in use, cross-validated by asker. Raises `EvaluationError` if too few."""
    explored, askers = sum(turn.explored for turn in rated), len({turn.group for turn in rated})
    if explored < LEAST_EXPLORED or askers < LEAST_ASKERS:
        raise EvaluationError(
            f"Too few ratings: the policy's decision was reversed in {explored} of {len(rated)} rated turns, asked by "
            f"{askers}; {LEAST_EXPLORED} and {LEAST_ASKERS} are needed. Set [limits] explore, such as 0.1, and wait."
        )
    folds = assign_folds([turn.group for turn in rated], FOLDS)
    weights = [fit_policy(turns, [*compress(rated, folds != fold)]) for fold in range(FOLDS)]
    choices = [acquires(weights[fold], turn) for turn, fold in zip(rated, folds, strict=True)]
    policies = {"never": [False] * len(rated), "always": [True] * len(rated), "learned": choices}
    return {name: estimate_gain(rated, chosen) for name, chosen in policies.items()}


def acquires(weights: Floats, turn: RecordedTurn | RatedTurn) -> bool:
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


async def read_ratings(settings: Settings) -> list[RatedTurn]:
    """Return the rated turns of a bot's record in which a policy decided. Raises `StorageError`."""
    rated, query = list[RatedTurn](), RecordFilter(rating="any", limit=PAGE)
    async with open_records(settings) as records:
        while page := await records.search.find(query):
            for summary in page:
                rated += build_rated(summary.asker, await records.audit.turn(summary.turn_id))
            query = replace(query, before=page[-1].seq)
    return rated


def build_rated(asker: str, entries: Iterable[LogEntry]) -> list[RatedTurn]:
    """Return a turn as rated, by each user's last rating; empty if no policy with these features decided in it."""
    facts, ratings = dict[str, Any](), dict[str, float]()
    for entry in entries:
        if entry.kind is EntryKind.STEP and entry.body.get("stage") == "policy":
            facts = entry.body["facts"]
        if entry.kind is EntryKind.FEEDBACK and entry.body.get("what") in REWARDS:
            ratings[entry.body["by"]] = REWARDS["missed" if entry.body.get("missed") else entry.body["what"]]
    if facts.get("signs", {}).keys() != set(SIGNS) or not ratings:
        return []
    mean = sum(ratings.values()) / len(ratings)
    return [RatedTurn(asker, PolicySigns(**facts["signs"]), facts["acquires"], facts["propensity"], mean)]


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
    files: Annotated[list[Path] | None, typer.Argument(help="Files of transcripts, and of questions.")] = None,
    ratings: Annotated[Path | None, typer.Option(help="The footnote.toml of a bot whose users rate answers.")] = None,
    write: Annotated[bool, typer.Option(help="Write the weights into the code.")] = True,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, in a folder for each corpus.")] = None,
) -> None:
    """Fit the learned policy.

    The weights in the code were made with

    python -m tools.training.policy_weights evaluation/answers/questions/transcripts/*.json
    evaluation/answers/questions/*_handbook*.json
    """
    turns = [turn for path in files or () for turn in asyncio.run(record_file(path, home))]
    rated = asyncio.run(read_ratings(load_settings(ratings))) if ratings else []
    report: dict[str, Any] = {"turns": len(turns), "crossvalidated": cross_validate(turns)} if turns else {}
    try:
        report |= {"rated": len(rated), "gains": compare_policies(rated, turns)} if ratings else {}
    except EvaluationError as error:
        raise SystemExit(str(error)) from error
    print(json.dumps(report, indent=2))
    learned = report["gains"]["learned"] if ratings else {"gain": 1.0, "error": 0.0}
    if write and learned["gain"] <= CLEAR * learned["error"]:
        raise SystemExit("The gain may be chance: nothing was written. Wait for more ratings.")
    if write:
        bias, *weights = (round(float(value), 4) for value in fit_policy(turns, rated))
        fitted = {"bias": bias, "weights": dict(zip(SIGNS, weights, strict=True))}
        path = Path(code.__path__[0]) / "policy_weights.json"
        path.write_text(json.dumps(fitted, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(train)
