"""Tests that a person has to wait after a question and is notified once."""

from dataclasses import dataclass

from bot.desk.turn_policy import Cooldown


@dataclass
class Clock:
    """A clock that stands still until it is set."""

    now: float = 0.0


def test_cooldown_applies_to_one_person() -> None:
    clock = Clock()
    cooldown = Cooldown(lambda: 10, lambda: clock.now)
    cooldown.begin("ana", "q1")
    clock.now = 4

    assert (cooldown.left("ana", "q2"), cooldown.left("ana", "q1"), cooldown.left("ben", "q2")) == (6, 0, 0)
    clock.now = 10
    assert cooldown.left("ana", "q2") == 0


def test_only_the_first_refusal_in_each_cooldown_is_reported() -> None:
    cooldown = Cooldown(lambda: 10, lambda: 0.0)
    cooldown.begin("ana", "q1")
    refusals = [cooldown.first_refusal("ana") for _ in range(2)]
    cooldown.begin("ana", "q2")

    assert (refusals, cooldown.first_refusal("ana"), cooldown.first_refusal("ben")) == ([True, False], True, False)


def test_cooldown_of_zero_seconds_never_waits() -> None:
    cooldown = Cooldown(lambda: 0, lambda: 0.0)
    cooldown.begin("ana", "q1")

    assert cooldown.left("ana", "q2") == 0
