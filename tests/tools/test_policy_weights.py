"""The policy learns the feature that shows when more evidence is worth its price, also from users' ratings."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from bot.answering.question_answering import answer
from bot.answering.turn_record import build_closing_entries, build_opening
from bot.desk.authorized_turn import build_action_entry
from bot.settings.tables.settings_tables import LimitSettings
from bot.types import TurnRequest, TurnResult
from evaluation import EvaluationError
from pipeline.stages.augmentation.policies import EVEN_CHANCE, PolicySigns, predict_gain
from pipeline.types import Answer, Conversation, Status, Turn, Usage
from storage.database.engine import open_database
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry, Step
from tests.bot.desk.fake_record import in_channel
from tests.bot.model_app import make_request, open_model_app
from tools.training.answer_weights import Booleans, Floats
from tools.training.policy_weights import (
    CLEAR,
    LEAST_EXPLORED,
    PRICE,
    RatedTurn,
    RecordedTurn,
    acquires,
    build_rated,
    compare_policies,
    cross_validate,
    estimate_gain,
    fit_policy,
    read_ratings,
    train,
)


def recorded(place: int) -> RecordedTurn:
    """Return a turn; in every fourth turn, a feature shows that the passages lack the answer."""
    lacks = place % 4 == 0
    signs = PolicySigns(0.5, float(lacks), 0.01 * (place % 7), 0.1, 0.0, 0.0, 0.0)
    return RecordedTurn(f"talk {place // 3}", signs, float(not lacks), 1.0)


def test_learned_policy_earns_the_best_reward() -> None:
    turns = [recorded(place) for place in range(120)]
    report = cross_validate(turns)

    assert report["never"] == {"utility": 0.75, "calls": 0.0, "reward": 0.75}
    assert report["always"] == {"utility": 1.0, "calls": 1.0, "reward": 1 - PRICE}
    assert report["learned"] == report["best possible"] == {"utility": 1.0, "calls": 0.25, "reward": 1 - PRICE / 4}


def test_fit_is_deterministic_and_decides_by_its_weights() -> None:
    turns = [recorded(place) for place in range(40)]
    weights = fit_policy(turns)

    assert weights == pytest.approx(fit_policy(turns))
    assert [acquires(weights, turn) for turn in turns] == [turn.gain > 0 for turn in turns]


# Simulated raters: in this world, whether an answer helps depends on its features and on the choice.

WRONG, MISSED = 0.15, 0.4  # shares of ratings opposite to the truth, and of bad answers that were not what was asked
Logging = Callable[[Floats], Booleans]


def draw_turns(random: np.random.Generator, count: int) -> tuple[Floats, Floats, Floats]:
    """Return features of turns, and the probability that the answer helps, without and with acquired evidence."""
    covered, beyond = random.uniform(0.2, 1, count), random.uniform(-0.5, 0.5, count)
    nearer, lead = random.normal(0, 0.1, count), random.uniform(0, 0.6, count)
    unlinked = random.choice([0, 0, 0.5, 1.0], count)
    parts, borrowed = (random.random(count) < share for share in (0.2, 0.25))
    poor = 2.5 * borrowed + 1.5 * unlinked + parts
    without = 1 / (1 + np.exp(poor - 0.6 - 1.5 * covered))
    acquired = 1 / (1 + np.exp(1.5 * lead - 1.35 + 0.3 * borrowed + 0.2 * unlinked + 0.2 * parts))
    return np.stack([covered, beyond, nearer, lead, unlinked, parts, borrowed], axis=1), without, acquired


def rate_turns(seed: int, count: int, explore: float, logging: Logging) -> list[RatedTurn]:
    """Return turns as a policy decided them, and as users rated them, with noise."""
    random = np.random.default_rng(seed)
    signs, without, acquired = draw_turns(random, count)
    explored = random.random(count) < explore
    chosen = logging(signs) ^ explored
    good = random.random(count) < np.where(chosen, acquired, without)
    up, missed = good ^ (random.random(count) < WRONG), ~good & (random.random(count) < MISSED)
    ratings = np.where(up, 1.0, np.where(missed, -1.0, 0.0))
    return [
        RatedTurn(f"U{place % 40}", PolicySigns(*map(float, row)), bool(chose), odds, float(rating))
        for place, (row, chose, odds, rating) in enumerate(
            zip(signs, chosen, np.where(explored, explore, 1 - explore), ratings, strict=True)
        )
    ]


def measure_regret(weights: Floats) -> float:
    """Return the reward per turn that the best policy earns beyond these weights, over 20,000 turns."""
    signs, *helps = draw_turns(np.random.default_rng(999), 20_000)
    without, acquired = (share * (1 - WRONG) + (1 - share) * (WRONG - (1 - WRONG) * MISSED) for share in helps)
    gains = acquired - PRICE - without
    chosen = weights[0] + signs @ weights[1:] >= 0
    return float(np.mean(np.maximum(gains, 0) - np.where(chosen, gains, 0)))


def decide_as_shipped(signs: Floats) -> Booleans:
    return np.array([predict_gain(PolicySigns(*map(float, row))) >= EVEN_CHANCE for row in signs])


def decide_always(signs: Floats) -> Booleans:
    return np.ones(len(signs), bool)


@pytest.mark.parametrize("logging", [decide_as_shipped, decide_always])
def test_weighting_by_propensity_comes_closer_to_the_best_policy(logging: Logging) -> None:
    weighted, unweighted = list[float](), list[float]()
    for seed in range(5):
        rated = rate_turns(seed, 2_000, 0.1, logging)
        weighted.append(measure_regret(fit_policy([], rated)))
        unweighted.append(measure_regret(fit_policy([], [replace(turn, propensity=EVEN_CHANCE) for turn in rated])))

    assert np.mean(weighted) < 0.025
    assert np.mean(weighted) < np.mean(unweighted) / 2


def test_learned_policy_gains_over_the_policy_in_use() -> None:
    gains = compare_policies(rate_turns(0, 8_000, 0.2, decide_always), [])

    assert gains["always"] == {"gain": 0.0, "error": 0.0}
    assert gains["learned"]["gain"] > CLEAR * gains["learned"]["error"] > 0
    assert gains["never"]["gain"] < 0


def test_gain_is_estimated_by_inverse_propensity() -> None:
    signs = PolicySigns(1, 0, 0, 0, 0, 0, 0)
    up, down = RatedTurn("U1", signs, acquired=True, propensity=0.2, rating=1.0), 0.25
    rated = [up] + [RatedTurn("U1", signs, acquired=False, propensity=0.8, rating=down)] * 4

    assert estimate_gain(rated, [True] * 5)["gain"] == pytest.approx(1.0 - PRICE - down)
    assert estimate_gain(rated, [False] * 5) == {"gain": 0.0, "error": 0.0}


def test_known_rewards_and_ratings_are_fitted_together() -> None:
    turns, rated = [recorded(place) for place in range(120)], rate_turns(1, 5, 0.5, decide_always)

    assert [acquires(fit_policy(turns, rated), turn) for turn in turns] == [turn.gain > 0 for turn in turns]


def test_too_few_explored_decisions_are_refused() -> None:
    rated = rate_turns(1, 200, 0.05, decide_always)

    with pytest.raises(EvaluationError, match=rf"reversed in \d+ of 200 rated.*; {LEAST_EXPLORED} and .*explore"):
        compare_policies(rated, [])
    with pytest.raises(EvaluationError, match="0 of 0 rated"):
        compare_policies([], [])
    with pytest.raises(EvaluationError, match="asked by 1; "):
        compare_policies([replace(turn, group="U1") for turn in rate_turns(1, 2_000, 0.1, decide_always)], [])


async def test_decision_of_a_turn_and_its_ratings_become_a_reward(tmp_path: Path) -> None:
    limits = LimitSettings(policy="always", explore=0.1)
    async with open_model_app(tmp_path, limits=limits) as (app, _):
        done = await answer(app, make_request(system="augmenter"), lambda _: None)
        for user, what in (("U1", "up"), ("U2", "up"), ("U1", "missed"), ("U1", "ask")):
            await app.audit.append(build_action_entry(done.answer_id, what, in_channel(user=user)))
        (rated,) = await read_ratings(app.settings)
        entries = await app.audit.turn(done.answer_id)

    assert (rated.acquired, rated.propensity) in {(True, 0.9), (False, 0.1)}
    assert rated.rating == 0.0  # the mean of 1 and -1: each user's last rating counts
    assert rated.reward == -PRICE * rated.acquired
    assert build_rated("U1", [entry for entry in entries if entry.kind is not EntryKind.STEP]) == []


def test_command_refuses_a_record_with_too_few_ratings(tmp_path: Path) -> None:
    request = TurnRequest("When?", in_channel(), id="a")
    facts = {"signs": asdict(PolicySigns(1, 0, 0, 0, 0, 0, 0)), "acquires": True, "propensity": 0.1}
    result = TurnResult("a", Answer(Status.ABSTAINED), "", "augmenter", None, Usage(), 1.0)
    opening = build_opening(request, Conversation((Turn("user", "When?"),)), {}, {"task": "ask"})
    with open_database("", home=tmp_path) as database:
        appending = AuditLog(database).append(
            LogEntry("a", EntryKind.TURN_OPENED, opening),
            *build_closing_entries(result, [Step("policy", {"facts": facts}, 1.0)], (), ()),
            build_action_entry("a", "down", in_channel()),
        )
        asyncio.run(appending)
    settings = tmp_path / "footnote.toml"
    settings.write_text(f'home = "{tmp_path}"')

    with pytest.raises(SystemExit, match="decision was reversed in 1 of 1 rated turns"):
        train(ratings=settings)
