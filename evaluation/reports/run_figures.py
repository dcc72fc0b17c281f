"""Compute the figures of a run of dialogues: by system and model, by how well known the topics are. Pure.

A measure is a share: it takes a part and a whole of each turn, such as supported claims and claims; a mean over turns
has 1 as its whole. So every figure has an interval and a test, over dialogues.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import pstdev

from evaluation.dialogues.dialogue_types import Dialogue, DialogueTurn, JudgedTurn, TopicKind
from evaluation.dialogues.run_folder import TurnKey
from evaluation.reports.significance import (
    Interval,
    PairedTest,
    adjust_for_many,
    compare_paired,
    estimate_share,
)
from evaluation.reports.word_measures import knowledge_f1, score_words
from storage.types import Verdict

ALL = "all"
ALONE = "model-alone"
Part = tuple[float, float]
Take = Callable[[DialogueTurn, JudgedTurn], Part | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of turns, and how it is written."""

    name: str
    title: str
    unit: str  # `%` of a share, `s`, or empty
    take: Take
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Arm:
    """A system with a model, one of those compared."""

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
        """Return the sums of the parts and wholes of its turns; None without any."""
        taken = [part for turn, judged in self.turns if (part := measure.take(turn, judged))]
        return (sum(part for part, _ in taken), sum(whole for _, whole in taken)) if taken else None


NOT_JUDGED = JudgedTurn()
"""The judgement of a turn that was not judged yet."""


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


def _count_supported(_: DialogueTurn, judged: JudgedTurn) -> Part | None:
    return sum(claim.verdict is Verdict.SUPPORTS for claim in judged.claims), len(judged.claims)


def _score(name: str) -> Take:
    def take(_: DialogueTurn, judged: JudgedTurn) -> Part | None:
        value = getattr(judged, name)
        return None if value is None else (value, 1)

    return take


def _mean(value: Callable[[DialogueTurn, JudgedTurn], float | None]) -> Take:
    def take(turn: DialogueTurn, judged: JudgedTurn) -> Part | None:
        result = value(turn, judged)
        return None if result is None else (result, 1)

    return take


def _per_claim(value: Callable[[DialogueTurn], float | None]) -> Take:
    def take(turn: DialogueTurn, judged: JudgedTurn) -> Part | None:
        result = value(turn)
        return None if result is None else (result, len(judged.claims))

    return take


def _when(answerable: bool) -> Take:  # noqa: FBT001 - read where it is called
    """Return a measure of abstention for the turns whose question the corpora answer, or for the others."""

    def take(_: DialogueTurn, judged: JudgedTurn) -> Part | None:
        return (judged.abstained, 1) if judged.answerable is answerable else None

    return take


def _seconds(turn: DialogueTurn) -> float | None:
    return None if turn.from_cache or turn.failure else turn.seconds  # cached calls take no time


def _first_seconds(turn: DialogueTurn, _: JudgedTurn) -> float | None:
    return None if turn.from_cache else turn.first_sentence_seconds


def _model_claims(turn: DialogueTurn) -> list[Verdict]:
    return [claim.verdict for claim in turn.claims if claim.origin == "model"]


def _count_retrieved(turn: DialogueTurn) -> int:
    """Return how many statements came from pages: those extracted, or else those quoted."""
    return turn.bullets or sum(claim.origin == "retrieved" for claim in turn.claims)


def _count_verified(turn: DialogueTurn, _: JudgedTurn) -> Part | None:
    claims = _model_claims(turn)
    return claims.count(Verdict.SUPPORTS), len(claims)


def _count_backed(_: DialogueTurn, judged: JudgedTurn) -> Part | None:
    return judged.citations.supported, judged.citations.sentences


def _count_needed(_: DialogueTurn, judged: JudgedTurn) -> Part | None:
    return judged.citations.needed, judged.citations.citations


def _gain(scale: str) -> Take:
    """Return a measure of how much higher a reply is graded than its draft."""

    def take(_: DialogueTurn, judged: JudgedTurn) -> Part | None:
        after, before = getattr(judged, scale), judged.draft_scores.get(scale)
        return None if after is None or before is None else (after - before, 1)

    return take


def _overlap(turn: DialogueTurn, _: JudgedTurn) -> float | None:
    quotes = [passage.quote or passage.text for passage in turn.passages]
    return knowledge_f1(turn.reply, quotes) if quotes else None


FACTUAL = Measure("factual", "Factual", "%", _count_supported)
SCALES = (
    Measure("relevant", "Relevant", "", _score("relevant")),
    Measure("informational", "Informational", "", _score("informational")),
    Measure("natural", "Natural", "", _score("natural")),
    Measure("non_repetitive", "Non-repetitive", "", _score("non_repetitive")),
)
TEMPORAL = Measure("temporal", "Temporal", "%", _score("temporally_correct"))
GAINS = tuple(
    Measure(f"{name}_gain", title, unit, _gain(name))
    for name, title, unit in (*((one.name, one.title, "") for one in SCALES), ("temporally_correct", "Temporal", "%"))
)
COSTS = (
    Measure("claim_cost", "Cost a claim", "", _per_claim(lambda turn: turn.cost), higher_is_better=False),
    Measure("claim_seconds", "Seconds a claim", "s", _per_claim(_seconds), higher_is_better=False),
    Measure("turn_cost", "Cost a turn", "", _mean(lambda turn, _: turn.cost), higher_is_better=False),
    Measure("turn_seconds", "Seconds a turn", "s", _mean(lambda turn, _: _seconds(turn)), higher_is_better=False),
    Measure("first_seconds", "to its first sentence", "s", _mean(_first_seconds), higher_is_better=False),
    Measure("calls", "Calls", "", _mean(lambda turn, _: turn.calls), higher_is_better=False),
    Measure("rounds", "Rounds", "", _mean(lambda turn, _: turn.rounds), higher_is_better=False),
    Measure("prompt_tokens", "Prompt tokens", "", _mean(lambda turn, _: turn.prompt_tokens), higher_is_better=False),
    Measure("reply_tokens", "Reply tokens", "", _mean(lambda turn, _: turn.completion_tokens), higher_is_better=False),
)
SILENT = Measure(
    "abstained", "Says that it does not know", "%", _mean(lambda turn, _: turn.status == "abstained"),
    higher_is_better=False,
)  # fmt: skip
ABSTENTION = (
    SILENT,
    Measure("abstained_rightly", "where nothing answers", "%", _when(answerable=False)),
    Measure("abstained_wrongly", "where a page answers", "%", _when(answerable=True), higher_is_better=False),
)
ORIGINS = (
    Measure("bullets", "From retrieval", "", _mean(lambda turn, _: _count_retrieved(turn))),
    Measure("model_claims", "From the model", "", _mean(lambda turn, _: len(_model_claims(turn)))),
    Measure("verified", "Verified", "%", _count_verified),
)
CLAIMS = Measure("claims", "Claims", "", _mean(lambda _, judged: len(judged.claims)))
CITATIONS = (
    Measure("citation_recall", "Citation recall", "%", _count_backed),
    Measure("citation_precision", "Citation precision", "%", _count_needed),
    Measure("kf1", "Knowledge F1", "%", _mean(_overlap)),
    Measure("withheld", "Withheld sentences", "", _mean(lambda turn, _: turn.withheld), higher_is_better=False),
    Measure("candidates", "Drafts", "", _mean(lambda turn, _: turn.candidates), higher_is_better=False),
)
FAILED = Measure("failed", "Failed", "%", _mean(lambda turn, _: bool(turn.failure)), higher_is_better=False)
MEASURES = (FACTUAL, *SCALES, TEMPORAL, *COSTS, *ABSTENTION, *ORIGINS, CLAIMS, *CITATIONS, FAILED)
TESTED = (FACTUAL, *SCALES, TEMPORAL, SILENT)


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of some dialogues: the estimate, and the standard deviation over turns that the papers give."""

    interval: Interval
    deviation: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measure of two arms on the topics that both had; `adjusted` is the randomised p among them all."""

    measure: Measure
    first: Arm
    second: Arm
    test: PairedTest
    adjusted: float | None


def list_arms(dialogues: Sequence[MeasuredDialogue]) -> tuple[Arm, ...]:
    return tuple(dict.fromkeys(dialogue.arm for dialogue in dialogues))


def list_kinds(dialogues: Sequence[MeasuredDialogue]) -> tuple[str, ...]:
    """List the kinds of topics, and "all" if there are several."""
    kinds = [kind.value for kind in TopicKind if any(dialogue.kind is kind for dialogue in dialogues)]
    return (*kinds, ALL) if len(kinds) > 1 else tuple(kinds)


def select(dialogues: Sequence[MeasuredDialogue], arm: Arm, kind: str = ALL) -> tuple[MeasuredDialogue, ...]:
    return tuple(dialogue for dialogue in dialogues if dialogue.arm == arm and kind in {ALL, dialogue.kind.value})


def measure(dialogues: Sequence[MeasuredDialogue], what: Measure, seed: int = 0) -> Figure | None:
    """Measure dialogues; None if no turn has the measure."""
    totals = [total for dialogue in dialogues if (total := dialogue.total(what))]
    parts, wholes = [part for part, _ in totals], [whole for _, whole in totals]
    interval = estimate_share(parts, wholes, seed, proportion=what.unit == "%")
    if interval is None:
        return None
    taken = [what.take(turn, judged) for dialogue in dialogues for turn, judged in dialogue.turns]
    values = [part / whole for part, whole in filter(None, taken) if whole]
    return Figure(interval, pstdev(values) if values else 0.0)


def compare_arms(dialogues: Sequence[MeasuredDialogue], seed: int = 0) -> tuple[Comparison, ...]:
    """Test every pair of arms by every tested measure, adjusted for the number of tests."""
    tests = [
        (
            what,
            first_arm,
            other,
            compare_paired(*_pair_topics(select(dialogues, first_arm), select(dialogues, other), what), seed),
        )
        for first_arm, other in combinations(list_arms(dialogues), 2)
        for what in TESTED
    ]
    adjusted = iter(adjust_for_many([test.randomised for *_, test in tests if test.randomised is not None]))
    return tuple(
        Comparison(what, first_arm, other, test, None if test.randomised is None else next(adjusted))
        for what, first_arm, other, test in tests
    )


def _pair_topics(
    first: Sequence[MeasuredDialogue], second: Sequence[MeasuredDialogue], what: Measure
) -> tuple[list[float], list[float]]:
    """Return the values of both arms at each topic that both have."""
    first_values, other = _by_topic(first, what), _by_topic(second, what)
    shared = [topic for topic in first_values if topic in other]
    return [first_values[topic] for topic in shared], [other[topic] for topic in shared]


def _by_topic(dialogues: Sequence[MeasuredDialogue], what: Measure) -> dict[str, float]:
    totals = ((dialogue.topic, dialogue.total(what)) for dialogue in dialogues)
    return {topic: total[0] / total[1] for topic, total in totals if total and total[1]}


def compare_runs(
    before: Sequence[MeasuredDialogue], after: Sequence[MeasuredDialogue], seed: int = 0
) -> Iterator[tuple[Arm, Measure, Figure, Figure, PairedTest]]:
    """Yield the figures of the same arms in two runs, and the test of the later against the earlier."""
    for arm in list_arms(after):
        earlier, later = select(before, arm), select(after, arm)
        for what in MEASURES:
            old, new = measure(earlier, what, seed), measure(later, what, seed)
            if old and new:
                yield arm, what, old, new, compare_paired(*_pair_topics(later, earlier, what), seed)


def score_refinement(dialogues: Sequence[MeasuredDialogue]) -> float | None:
    """Return the BLEU-4 of replies, with their drafts as references; 0 to 1."""
    pairs = [(turn.reply, turn.draft) for dialogue in dialogues for turn, _ in dialogue.turns if turn.draft]
    scores = score_words(pairs)
    return scores.bleu4 if scores else None
