"""Compute the figures of a run of dialogues, by system, model and kind of topic. Pure.

A measure takes a part and a whole from each turn, such as supported claims and all claims. If it is a mean over turns,
the whole is 1. So every figure is a share, with an interval and a test over dialogues.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import pstdev
from typing import Any

from evaluation.dialogues.dialogue_types import Dialogue, DialogueTurn, JudgedTurn, TopicKind
from evaluation.dialogues.run_folder import TurnKey
from evaluation.reports.significance import Interval, PairedTest, adjust_for_many, compare_paired, estimate_share
from evaluation.reports.word_measures import bleu4, drop_marks, f1
from storage.types import Verdict

ALL = "all"
ALONE = "model-alone"
Part = tuple[float, float]
Take = Callable[[DialogueTurn, JudgedTurn], Part | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of turns."""

    name: str
    title: str
    unit: str  # `%`, `s`, or empty
    take: Take
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Arm:
    """A system with a model, as one side of a comparison."""

    system: str
    model: str

    def __str__(self) -> str:
        return f"{self.system} · {self.model}" if self.model else self.system


@dataclass(frozen=True, slots=True)
class MeasuredDialogue:
    arm: Arm
    topic: str  # its corpus and title, the same for all arms
    kind: TopicKind
    turns: tuple[tuple[DialogueTurn, JudgedTurn], ...]

    def total(self, measure: Measure) -> Part | None:
        """Return the sum of the parts and the sum of the wholes over all turns; None if no turn has this measure."""
        taken = [part for turn, judged in self.turns if (part := measure.take(turn, judged))]
        return (sum(part for part, _ in taken), sum(whole for _, whole in taken)) if taken else None


NOT_JUDGED = JudgedTurn()
"""The judgement of a turn that is not judged yet."""


def join_judgements(
    dialogues: Sequence[Dialogue], judgements: Mapping[TurnKey, JudgedTurn]
) -> tuple[MeasuredDialogue, ...]:
    """Join each dialogue with the judgements of its turns."""
    return tuple(
        MeasuredDialogue(
            arm=Arm(dialogue.system, dialogue.model),
            topic=f"{dialogue.topic.corpus}/{dialogue.topic.title}",
            kind=dialogue.topic.kind,
            turns=tuple(
                (turn, judgements.get((dialogue.id, place), NOT_JUDGED))
                for place, turn in enumerate(dialogue.turns, start=1)
            ),
        )
        for dialogue in dialogues
    )


def _mean(value: Callable[[DialogueTurn, JudgedTurn], float | None]) -> Take:
    """Return a function that takes a value from each turn, for a mean over turns."""
    return lambda turn, judged: None if (result := value(turn, judged)) is None else (result, 1)


def _per_claim(value: Callable[[DialogueTurn], float | None]) -> Take:
    return lambda turn, judged: None if (result := value(turn)) is None else (result, len(judged.claims))


def _score(scale: str) -> Take:
    return _mean(lambda _, judged: getattr(judged, scale))


def _abstained(*, answerable: bool) -> Take:
    """Return a function that measures abstentions among the turns that are, or are not, `answerable`."""
    return _mean(lambda _, judged: judged.abstained if judged.answerable is answerable else None)


def _seconds(turn: DialogueTurn) -> float | None:
    return None if turn.from_cache or turn.status in {"failed", "refused"} else turn.seconds  # cached calls take none


def _model_claims(turn: DialogueTurn) -> list[Verdict]:
    return [claim.verdict for claim in turn.claims if claim.origin == "model"]


def _count_voted(judged: JudgedTurn, by: str) -> Part:
    verdicts = [getattr(claim, by) for claim in judged.claims if claim.people]
    return verdicts.count(Verdict.SUPPORTS), len(verdicts)


def _overlap(turn: DialogueTurn, _: JudgedTurn) -> float | None:
    quotes = [passage.quote or passage.text for passage in turn.passages]
    return f1(drop_marks(turn.reply), " ".join(quotes)) if quotes else None


FACTUAL = Measure(
    "factual", "Factual", "%",
    lambda _, judged: (sum(claim.verdict is Verdict.SUPPORTS for claim in judged.claims), len(judged.claims)),
)  # fmt: skip
PEOPLE = Measure("factual_people", "Factual, by people", "%", lambda _, judged: _count_voted(judged, "people"))
SAMPLE = Measure("factual_sample", "the same claims", "%", lambda _, judged: _count_voted(judged, "verdict"))
_TITLES = {"relevant": "Relevant", "informational": "Informational", "natural": "Natural"} | {
    "non_repetitive": "Non-repetitive"
}
SCALES = tuple(Measure(scale, title, "", _score(scale)) for scale, title in _TITLES.items())
TEMPORAL = Measure("temporal", "Temporal", "%", _score("temporally_correct"))
GAINS = tuple(replace(scale, name=f"{scale.name}_gain", unit="") for scale in (*SCALES, TEMPORAL))
"""The scales, for turns of `split_steps`."""
STEPS = ("refinement", "gate")
COSTS = (
    Measure("claim_cost", "Cost a claim", "", _per_claim(lambda turn: turn.cost), higher_is_better=False),
    Measure("claim_seconds", "Seconds a claim", "s", _per_claim(_seconds), higher_is_better=False),
    Measure("turn_cost", "Cost a turn", "", _mean(lambda turn, _: turn.cost), higher_is_better=False),
    Measure("turn_seconds", "Seconds a turn", "s", _mean(lambda turn, _: _seconds(turn)), higher_is_better=False),
    Measure(
        "first_seconds", "to its first sentence", "s",
        _mean(lambda turn, _: None if turn.from_cache else turn.first_sentence_seconds), higher_is_better=False,
    ),
    Measure("calls", "Calls", "", _mean(lambda turn, _: turn.calls), higher_is_better=False),
    Measure("rounds", "Rounds", "", _mean(lambda turn, _: turn.rounds), higher_is_better=False),
    Measure("prompt_tokens", "Prompt tokens", "", _mean(lambda turn, _: turn.prompt_tokens), higher_is_better=False),
    Measure("reply_tokens", "Reply tokens", "", _mean(lambda turn, _: turn.completion_tokens), higher_is_better=False),
)  # fmt: skip
SILENT = Measure(
    "abstained", "Says that it does not know", "%", _mean(lambda turn, _: turn.status == "abstained"),
    higher_is_better=False,
)  # fmt: skip
ABSTENTION = (
    SILENT,
    Measure("abstained_rightly", "where nothing answers", "%", _abstained(answerable=False)),
    Measure("abstained_wrongly", "where a page answers", "%", _abstained(answerable=True), higher_is_better=False),
)
ORIGINS = (
    Measure(  # statements extracted from pages, or else those quoted
        "bullets", "From retrieval", "",
        _mean(lambda turn, _: turn.bullets or sum(claim.origin == "retrieved" for claim in turn.claims)),
    ),
    Measure("model_claims", "From the model", "", _mean(lambda turn, _: len(_model_claims(turn)))),
    Measure(
        "verified", "Verified", "%",
        lambda turn, _: (_model_claims(turn).count(Verdict.SUPPORTS), len(_model_claims(turn))),
    ),
)  # fmt: skip
CLAIMS = Measure("claims", "Claims", "", _mean(lambda _, judged: len(judged.claims)))
CITATIONS = (
    Measure(
        "citation_recall", "Citation recall", "%",
        lambda _, judged: (judged.citations.supported, judged.citations.sentences),
    ),
    Measure(
        "citation_precision", "Citation precision", "%",
        lambda _, judged: (judged.citations.needed, judged.citations.citations),
    ),
    Measure("kf1", "Knowledge F1", "%", _mean(_overlap)),
    Measure("withheld", "Withheld sentences", "", _mean(lambda turn, _: turn.withheld), higher_is_better=False),
    Measure("candidates", "Drafts", "", _mean(lambda turn, _: turn.candidates), higher_is_better=False),
)  # fmt: skip
FAILED = Measure("failed", "Model failed", "%", _mean(lambda turn, _: bool(turn.failure)), higher_is_better=False)
MEASURES = (FACTUAL, PEOPLE, SAMPLE, *SCALES, TEMPORAL, *COSTS, *ABSTENTION, *ORIGINS, CLAIMS, *CITATIONS, FAILED)
TESTED = (FACTUAL, *SCALES, TEMPORAL, SILENT)


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of some dialogues: its estimate, and the standard deviation over turns, as the papers report it."""

    interval: Interval
    deviation: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measure of two arms, compared on the topics that both have."""

    measure: Measure
    first: Arm
    second: Arm
    test: PairedTest
    adjusted: float | None  # the randomised p-value, adjusted for the number of tests


def list_arms(dialogues: Sequence[MeasuredDialogue]) -> tuple[Arm, ...]:
    return tuple(dict.fromkeys(dialogue.arm for dialogue in dialogues))


def list_kinds(dialogues: Sequence[MeasuredDialogue]) -> tuple[str, ...]:
    """Return the kinds of topics, and `all` if there are several."""
    kinds = [kind.value for kind in TopicKind if any(dialogue.kind is kind for dialogue in dialogues)]
    return (*kinds, ALL) if len(kinds) > 1 else tuple(kinds)


def select(dialogues: Sequence[MeasuredDialogue], arm: Arm, kind: str = ALL) -> tuple[MeasuredDialogue, ...]:
    return tuple(dialogue for dialogue in dialogues if dialogue.arm == arm and kind in {ALL, dialogue.kind.value})


def measure(dialogues: Sequence[MeasuredDialogue], what: Measure, seed: int = 0) -> Figure | None:
    """Return a measure of these dialogues; None if no turn has it."""
    totals = [total for dialogue in dialogues if (total := dialogue.total(what))]
    parts, wholes = [part for part, _ in totals], [whole for _, whole in totals]
    interval = estimate_share(parts, wholes, seed, proportion=what.unit == "%")
    if interval is None:
        return None
    taken = [what.take(turn, judged) for dialogue in dialogues for turn, judged in dialogue.turns]
    values = [part / whole for part, whole in filter(None, taken) if whole]
    return Figure(interval, pstdev(values) if values else 0.0)


def compare_arms(dialogues: Sequence[MeasuredDialogue], seed: int = 0) -> tuple[Comparison, ...]:
    """Test every pair of arms by every tested measure. The p-values are adjusted for the number of tests."""
    tests = [
        (what, first, second, _test(select(dialogues, first), select(dialogues, second), what, seed))
        for first, second in combinations(list_arms(dialogues), 2)
        for what in TESTED
    ]
    adjusted = adjust_randomised([test for *_, test in tests])
    return tuple(Comparison(*row, p) for row, p in zip(tests, adjusted, strict=True))


def adjust_randomised(tests: Sequence[PairedTest]) -> list[float | None]:
    """Return the p-value of each randomised test, adjusted for their number; None for a test without p-value."""
    adjusted = iter(adjust_for_many([test.randomised for test in tests if test.randomised is not None]))
    return [None if test.randomised is None else next(adjusted) for test in tests]


def _test(
    first: Sequence[MeasuredDialogue], second: Sequence[MeasuredDialogue], what: Measure, seed: int
) -> PairedTest:
    """Compare the values of two arms on the topics that both have."""
    values, others = _by_topic(first, what), _by_topic(second, what)
    shared = [topic for topic in values if topic in others]
    return compare_paired([values[topic] for topic in shared], [others[topic] for topic in shared], seed)


def _by_topic(dialogues: Sequence[MeasuredDialogue], what: Measure) -> dict[str, float]:
    totals = ((dialogue.topic, dialogue.total(what)) for dialogue in dialogues)
    return {topic: total[0] / total[1] for topic, total in totals if total and total[1]}


def compare_runs(
    before: Sequence[MeasuredDialogue], after: Sequence[MeasuredDialogue], seed: int = 0
) -> Iterator[tuple[Arm, Measure, Figure, Figure, PairedTest]]:
    """Yield the figures of each arm in two runs, and the test of the later run against the earlier one."""
    for arm in list_arms(after):
        earlier, later = select(before, arm), select(after, arm)
        for what in MEASURES:
            old, new = measure(earlier, what, seed), measure(later, what, seed)
            if old and new:
                yield arm, what, old, new, _test(later, earlier, what, seed)


def score_steps(dialogues: Sequence[MeasuredDialogue]) -> Mapping[str, float]:
    """Return the BLEU-4 of refined drafts and of replies, each against the text before; empty if none was refined."""
    turns = [turn for dialogue in dialogues for turn, _ in dialogue.turns if turn.refined]
    texts = [tuple(map(drop_marks, (turn.draft, turn.refined, turn.reply))) for turn in turns]
    return {STEPS[at]: bleu4([(text[at + 1], text[at]) for text in texts]) for at in (0, 1) if texts}


def split_steps(dialogue: MeasuredDialogue) -> Iterator[MeasuredDialogue]:
    """Yield the refined turns of a dialogue for each step, graded by how much better the step made them."""
    graded = [(turn, _list_grades(judged)) for turn, judged in dialogue.turns if judged.refined_scores]
    for place, step in enumerate(STEPS):
        gains = ((turn, _subtract(grades[place + 1], grades[place])) for turn, grades in graded)
        yield replace(dialogue, arm=Arm(f"{dialogue.arm}, {step}", ""), turns=tuple(gains))


def _list_grades(judged: JudgedTurn) -> tuple[Mapping[str, int], ...]:
    own = {scale: getattr(judged, scale) for scale in (*_TITLES, "temporally_correct")}
    return judged.draft_scores, judged.refined_scores, {scale: own[scale] for scale in own if own[scale] is not None}


def _subtract(after: Mapping[str, int], before: Mapping[str, int]) -> JudgedTurn:
    gains: dict[str, Any] = {scale: after[scale] - before[scale] for scale in after if scale in before}
    return JudgedTurn(**gains)
