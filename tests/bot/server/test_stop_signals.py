"""Tests of SIGTERM and Ctrl-C: the first stops in order, the second at once, and neither is an error."""

import signal

import pytest

from bot.server.lifecycle import StopRequest, handle_reload_signals, handle_stop_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_first_signal_stops_and_the_second_hurries(number: signal.Signals) -> None:
    with handle_stop_signals() as stopping:
        assert not stopping.asked.is_set()
        signal.raise_signal(number)
        await stopping.asked.wait()
        assert not stopping.hurried.is_set()
        signal.raise_signal(signal.SIGTERM)
        await stopping.hurried.wait()
        signal.raise_signal(number)


async def test_signal_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with handle_stop_signals():
        pass

    assert signal.getsignal(signal.SIGTERM) is before[0]
    assert signal.getsignal(signal.SIGINT) in {before[1], signal.default_int_handler}


@pytest.mark.parametrize("terminals", [(False, False), (True, True), (True, False)])
async def test_hangup_reloads_or_stops_if_the_terminal_is_closed(terminals: tuple[bool, ...]) -> None:
    stopping, answers = StopRequest(), iter(terminals)
    with handle_reload_signals(stopping, lambda: next(answers, False)) as asked:
        signal.raise_signal(signal.SIGHUP)
        expected = stopping.asked if terminals == (True, False) else asked
        await expected.wait()
        assert (stopping.asked.is_set(), asked.is_set()) == (expected is stopping.asked, expected is asked)
