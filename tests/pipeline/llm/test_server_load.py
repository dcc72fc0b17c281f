"""When a model's server counts as slow or busy, by the duration of its calls."""

from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.simulated_model.chat_protocol import Reply, answer_error
from pipeline.errors import ModelUnavailable
from pipeline.llm.model import BudgetMeter
from pipeline.llm.model_client import open_model
from pipeline.llm.server_load import HALF_LIFE, LEAST_LOWERED, CallSample, LoadWatch, Pressure
from tests.fake_model_server import in_turn, serve
from tests.pipeline.llm.model_calls import CALL, settings_for

SLOW = 8.0
WELL = CallSample(0.0, 0.5, reading=2.0, tokens=120)
SAMPLES = st.builds(
    CallSample,
    st.floats(0, 60),
    st.none() | st.floats(0, 60),
    st.booleans(),
    st.floats(0, 60),
    st.integers(0, 1_000),
    st.just(4),
    st.integers(0, 4),
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.watch = LoadWatch(lambda: self.now)

    def pass_calls(self, sample: CallSample, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            self.now += seconds
            self.watch.observe(sample)

    def decide(self, slow: float = SLOW) -> Pressure | None:
        return self.watch.decide(slow)


@pytest.mark.parametrize(
    ("sample", "because"),
    [
        (CallSample(0.0, 1.0, reading=12.0, tokens=120), "slow"),
        (CallSample(0.0, 8.5, reading=1.0, tokens=120), "slow"),
        (CallSample(0.0, 9.0, silent=True), "slow"),
        (CallSample(7.0, 0.5, reading=2.0, tokens=120), "busy"),
        (CallSample(9.0), "busy"),
        (CallSample(0.0, 0.5, reading=2.0, tokens=120, tries=2, refused=1), "busy"),
    ],
)
def test_effort_is_lowered_after_some_bad_calls_and_recovers(sample: CallSample, because: str) -> None:
    clock = Clock()
    clock.pass_calls(WELL, 1)
    clock.pass_calls(sample, 2)
    assert clock.decide() is None  # two calls are not yet known well

    clock.pass_calls(sample, 20)
    pressure = clock.decide()
    assert pressure
    assert pressure.because == because
    clock.pass_calls(WELL, 60, 0.1)
    still = clock.decide()  # less than a minute after it was lowered
    assert still
    assert still.because == because
    clock.pass_calls(WELL, 10, 6.0)
    assert clock.decide() is None


def test_figures_are_means_over_the_calls() -> None:
    clock = Clock()
    clock.pass_calls(CallSample(1.0, 2.0, reading=12.0, tokens=240, tries=4, refused=1), 10)
    pressure = clock.decide()
    assert pressure
    figures = pressure.figures
    assert (figures.waited, figures.first_token, figures.tokens_a_second) == pytest.approx((1, 2, 20))
    assert (figures.call_seconds, figures.refused) == pytest.approx((9, 0.25))


@pytest.mark.parametrize(
    ("between", "bad"),
    [
        (CallSample(0.0, 1.0, reading=6.5, tokens=120), CallSample(0.0, 9.0, reading=6.0, tokens=120)),
        (replace(WELL, tries=10, refused=1), replace(WELL, tries=2, refused=1)),
    ],
)
def test_effort_stays_as_it_is_while_calls_are_neither_slow_nor_fast(between: CallSample, bad: CallSample) -> None:
    clock = Clock()
    clock.pass_calls(between, 50)
    assert clock.decide() is None
    clock.pass_calls(bad, 50)
    assert clock.decide()
    clock.pass_calls(between, 200)
    assert clock.decide()


def test_short_silence_does_not_change_the_first_token_time() -> None:
    clock = Clock()
    clock.pass_calls(CallSample(0.0, 9.0, reading=2.0, tokens=120), 10)
    clock.pass_calls(CallSample(0.0, 0.1, silent=True), 20)
    pressure = clock.decide()
    assert pressure
    assert pressure.figures.first_token == pytest.approx(9)


def test_old_slow_calls_expire_and_a_slowness_limit_of_zero_disables_the_check() -> None:
    clock = Clock()
    clock.pass_calls(CallSample(30.0, 30.0), 50)
    assert clock.decide(0.0) is None
    assert clock.decide()
    clock.now += 3 * HALF_LIFE
    assert clock.decide()
    clock.now += 10 * HALF_LIFE
    assert clock.decide() is None


@given(st.lists(st.tuples(SAMPLES, st.floats(0.1, 40)), max_size=60), st.floats(0.1, 100))
def test_effort_does_not_flap_and_recovers(calls: list[tuple[CallSample, float]], slow: float) -> None:
    clock, decided = Clock(), list[tuple[bool, float]]()
    for sample, seconds in calls:
        clock.pass_calls(sample, 1, seconds)
        decided.append((clock.decide(slow) is not None, clock.now))
    spells = [(lowered, [at for _, at in those]) for lowered, those in groupby(decided, key=lambda one: one[0])]
    for (lowered, since), (_, until) in pairwise(spells):
        assert not lowered or until[0] - since[0] >= LEAST_LOWERED
    clock.pass_calls(CallSample(0.0, 0.0, reading=0.01, tokens=120), 400)
    assert clock.decide(slow) is None


async def test_call_sample_excludes_the_readers_time() -> None:
    clock, samples = Clock(), list[CallSample]()
    answers = in_turn(answer_error(429, "Busy."), Reply("On the Rhine."))

    def script(request):
        clock.now += 2
        return answers(request)

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    async with serve(script) as server:
        settings = settings_for(server)
        async with open_model(settings, clock=lambda: clock.now, sleep=sleep, observe=samples.append) as model:
            async for _ in model.stream(CALL, BudgetMeter()):
                clock.now += 50
            await model.complete(CALL, BudgetMeter())

    streamed, whole = samples
    assert 2 < streamed.waited < 3
    assert (streamed.first, streamed.reading, streamed.tries, streamed.refused) == (2, 0, 2, 1)
    assert streamed.tokens > 0
    assert whole == CallSample(0.0, 2.0, tokens=whole.tokens)


async def test_failed_call_without_a_token_is_measured_with_its_waiting_time() -> None:
    clock, samples = Clock(), list[CallSample]()

    def script(_):
        clock.now += 30
        return answer_error(503, "Busy.")

    async with serve(script) as server:
        settings = settings_for(server, retries=0)
        async with open_model(settings, clock=lambda: clock.now, observe=samples.append) as model:
            with pytest.raises(ModelUnavailable):
                async for _ in model.stream(CALL, BudgetMeter()):
                    pass

    assert samples == [CallSample(0.0, 30.0, silent=True, refused=1)]
