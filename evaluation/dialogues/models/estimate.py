"""Estimate the cost of a run before it starts: calls, tokens, money and time.

The tokens of rendered prompts are counted. The numbers of calls, and the lengths of turns and replies, were measured
over the example handbook. As soon as a run has turns, their means are used instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluation.dialogues.dialogue_run import NO_MODEL, plan_dialogues
from evaluation.dialogues.dialogue_types import Dialogue, RunManifest
from evaluation.dialogues.judging.judge_replies import SCALES
from evaluation.dialogues.models.stand_ins import RULE_JUDGE, SCRIPTED_USER, STAND_INS
from evaluation.dialogues.prompts import PROMPTS
from evaluation.simulated_model.model_pace import CHARACTERS_A_TOKEN, ServerPace
from evaluation.simulated_model.model_replies import REPLY_LENGTHS
from evaluation.system_variants import MODEL_ALONE, parse_variant
from pipeline.llm.model_settings import Price
from pipeline.prompts.prompt_templates import PromptMode, render_prefix
from pipeline.systems import SYSTEMS

ASKED_A_TURN: Mapping[str, float] = {
    "summarise": 3,
    "bullets": 3,
    "feedback": 0.9,
    "refine": 0.5,
    "verdicts": 0.7,
    "need": 0.3,
    "criticism": 0.3,
    "web_query": 0.3,
    "verify": 0,
}
"""How often a turn calls a template; once if it is not listed."""
CLAIMING_A_TURN: Mapping[str, Mapping[str, float]] = {
    "generate": {"verify": 3, "verdicts": 1},
    "claims": {"verdicts": 2},
}
"""Other numbers of calls for systems with a template for the model's own claims."""
TURN_TOKENS = 450  # of a prompt's last message: the conversation and the passages
OTHER_REPLY_TOKENS = 60
CLAIMS_A_REPLY = 3
SENTENCES_A_REPLY = 3
_PACE = ServerPace()
_FREE = {*STAND_INS, SCRIPTED_USER, RULE_JUDGE, NO_MODEL}


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected cost of some calls."""

    calls: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    cost: float = 0.0  # of models with a price; stand-ins cost nothing
    unpriced: tuple[str, ...] = ()  # models without a price
    seconds: float = 0.0  # without concurrency

    def __add__(self, other: "Expectation") -> "Expectation":
        return Expectation(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
            tuple(sorted({*self.unpriced, *other.unpriced})),
            self.seconds + other.seconds,
        )

    def times(self, count: float) -> "Expectation":
        tokens = self.prompt_tokens * count, self.completion_tokens * count
        unpriced = self.unpriced if count else ()
        return Expectation(self.calls * count, *tokens, self.cost * count, unpriced, self.seconds * count)

    def describe(self) -> Mapping[str, Any]:
        """Return the fields as JSON values."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def expect_run(
    manifest: RunManifest, prices: Mapping[str, Price], held: Sequence[Dialogue] = (), judged: int = 0
) -> Expectation:
    """Return the expected cost of a run's remaining turns, and of judging all its turns except `judged` ones."""
    started = {dialogue.id: dialogue for dialogue in held}
    dialogues = plan_dialogues(manifest)
    total = expect_judgement(manifest.judge, prices).times(len(dialogues) * manifest.turns - judged)
    for planned in dialogues:
        remaining = manifest.turns - len(started.get(planned.id, planned).turns)
        user = expect_calls({"simulated_user": 1}, manifest.simulator, prices)
        own = _mean_turn(held, planned) or expect_turn(planned.system, planned.model, prices)
        total += (own + user).times(remaining)
    return total


def expect_turn(system: str, model: str, prices: Mapping[str, Price]) -> Expectation:
    name = parse_variant(system).name
    if name == MODEL_ALONE:
        return expect_calls({"generate": 1}, model, prices)
    calls = {template: ASKED_A_TURN.get(template, 1) for template in SYSTEMS[name].calls}
    for claiming in CLAIMING_A_TURN.keys() & calls:
        calls |= CLAIMING_A_TURN[claiming]
    return expect_calls(calls, model, prices)


def expect_judgement(judge: str, prices: Mapping[str, Price]) -> Expectation:
    verified = CLAIMS_A_REPLY + SENTENCES_A_REPLY
    return expect_calls({"split": 1, "verify": verified, **dict.fromkeys(SCALES, 1)}, judge, prices)


def expect_calls(templates: Mapping[str, float], model: str, prices: Mapping[str, Price]) -> Expectation:
    """Return the expected cost of calls to a model. `templates` has the number of calls for each template."""
    total = Expectation()
    for template, count in templates.items():
        prefix = sum(len(message.text) for message in render_prefix(template, PromptMode(folder=PROMPTS)))
        length = REPLY_LENGTHS.get("draft" if template == "answer" else template)
        written = length.tokens * length.items if length else OTHER_REPLY_TOKENS
        read = prefix / CHARACTERS_A_TOKEN + TURN_TOKENS
        price = prices.get(model)
        cost = (read * price.prompt + written * price.completion) / 1e6 if price else 0.0
        seconds = _PACE.first_token + read / _PACE.prompt + written / _PACE.out
        unpriced = (model,) if price is None and model not in _FREE else ()
        total += Expectation(1, read, written, cost, unpriced, seconds).times(count)
    return total


def _mean_turn(held: Iterable[Dialogue], planned: Dialogue) -> Expectation | None:
    """Return the mean cost of the finished turns with the same system and model; None if there are none."""
    alike = [
        turn
        for dialogue in held
        if (dialogue.system, dialogue.model) == (planned.system, planned.model)
        for turn in dialogue.turns
    ]
    if not alike:
        return None
    total = Expectation()
    for turn in alike:
        unpriced = (planned.model,) if turn.calls and turn.cost is None and planned.model not in _FREE else ()
        tokens = turn.prompt_tokens, turn.completion_tokens
        total += Expectation(turn.calls, *tokens, turn.cost or 0.0, unpriced, turn.seconds)
    return total.times(1 / len(alike))


def describe_expectation(expected: Expectation, at_once: int) -> str:
    """Describe an expectation in a line, with the minutes if `at_once` dialogues run at the same time."""
    tokens = f"{expected.prompt_tokens:,.0f} tokens read, {expected.completion_tokens:,.0f} written"
    money = f"it costs {'at least ' if expected.unpriced else ''}{expected.cost:,.2f}"
    if expected.unpriced:
        money += f"; no price is set for {', '.join(expected.unpriced)} ([model] prices)"
    minutes = expected.seconds / at_once / 60
    return f"about {expected.calls:,.0f} calls, {tokens}; {money}; {minutes:,.0f} minutes"
