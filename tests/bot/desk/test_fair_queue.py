"""Tests of the order in which the desk starts questions, for random sequences of events."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bot.desk.jobs.scheduler import (
    ConcurrencyLimit,
    QueuedJob,
    SchedulerState,
    count_ahead,
    enqueue_job,
    mark_answered,
    remove_job,
    start_jobs,
)

limits = st.builds(ConcurrencyLimit, st.integers(1, 4), st.integers(1, 3))
places = st.tuples(st.sampled_from("ABCD"), st.sampled_from("xyz"))
histories = st.lists(st.one_of(places, st.integers(0, 50)), max_size=60)
"""A place asks a question; a number picks a running question, which is answered or removed."""


def job(ticket, channel, conversation):
    return QueuedJob(ticket, channel, f"{channel}/{conversation}")


def in_order(entries):
    """Return whether these entries are in the order in which they were submitted."""
    tickets = [entry.ticket for entry in entries]
    return tickets == sorted(tickets)


@given(limits, histories)
def test_questions_start_in_order_as_far_as_the_limits_allow(limit, events):
    state, started, ticket = SchedulerState(), [], 0
    for event in events:
        running = (*state.answering, *state.delivering)
        if isinstance(event, tuple):
            ticket += 1
            state = enqueue_job(state, job(ticket, *event))
        elif running:
            chosen = running[event % len(running)]
            state = (
                mark_answered(state, chosen) if chosen in state.answering and event % 2 else remove_job(state, chosen)
            )
        state, new = start_jobs(state, limit)
        started += new
        check_state(state, new, limit)

    for place in {entry.conversation for entry in started}:
        assert in_order(entry for entry in started if entry.conversation == place)
    for channel in "ABCD" if limit.per_channel == 1 else "":
        assert in_order(entry for entry in started if entry.channel == channel)

    waiting = {entry.ticket for line in state.waiting.values() for entry in line}
    late = set()
    while state.answering or state.delivering:
        state = remove_job(state, next(iter((*state.answering, *state.delivering))))
        state, new = start_jobs(state, limit)
        late |= {entry.ticket for entry in new}
    assert late == waiting
    assert not state.waiting


def check_state(state, new, limit):
    """Check that limits are kept, free capacity is used, and only questions of busy conversations are overtaken."""
    answering = Counter(entry.channel for entry in state.answering.values())
    busy = [entry.conversation for entry in (*state.answering.values(), *state.delivering.values())]
    assert len(state.answering) <= limit.at_once
    assert max(answering.values(), default=0) <= limit.per_channel
    assert len(set(busy)) == len(busy)

    for entry in new:
        earlier = [other for other in state.waiting.get(entry.channel, ()) if other.ticket < entry.ticket]
        assert all(other.conversation in busy for other in earlier)
    for channel, line in state.waiting.items() if len(state.answering) < limit.at_once else ():
        free = line if limit.per_channel > 1 else line[:1]
        assert answering[channel] == limit.per_channel or all(entry.conversation in busy for entry in free)


def test_follow_up_does_not_delay_other_threads():
    state = enqueue_job(
        enqueue_job(enqueue_job(SchedulerState(), job(1, "A", "x")), job(2, "A", "x")), job(3, "A", "y")
    )

    _, wide = start_jobs(state, ConcurrencyLimit(4, 2))
    _, narrow = start_jobs(mark_answered(start_jobs(state, ConcurrencyLimit(4, 1))[0], 1), ConcurrencyLimit(4, 1))

    assert [entry.ticket for entry in wide] == [1, 3]
    assert narrow == ()


@given(st.integers(1, 3), st.integers(1, 30))
def test_quiet_channels_are_not_delayed_by_a_busy_one(quiet, load):
    limit, state = ConcurrencyLimit(1, 1), SchedulerState()
    for ticket in range(load):
        state = enqueue_job(state, job(ticket, "busy", str(ticket)))
    for ticket in range(quiet):
        state = enqueue_job(state, job(load + ticket, f"quiet{ticket}", "x"))

    order = []
    for _ in range(load + quiet):
        state, (entry,) = start_jobs(state, limit)
        order.append(entry.channel)
        state = remove_job(state, entry.ticket)

    assert order[0] == "busy"
    assert order[1 : quiet + 1] == [f"quiet{number}" for number in range(quiet)]


def test_delivery_does_not_count_towards_the_limit():
    limit = ConcurrencyLimit(1, 1)
    state = enqueue_job(
        enqueue_job(enqueue_job(SchedulerState(), job(1, "A", "x")), job(2, "B", "x")), job(3, "A", "x")
    )
    state, first = start_jobs(state, limit)

    state, second = start_jobs(mark_answered(state, 1), limit)
    state, third = start_jobs(mark_answered(state, 2), limit)
    state, fourth = start_jobs(remove_job(state, 1), limit)

    assert [[entry.ticket for entry in new] for new in (first, second, third, fourth)] == [[1], [2], [], [3]]


def test_position_counts_earlier_unanswered_questions():
    state = SchedulerState()
    for ticket, channel in ((1, "A"), (2, "B"), (3, "A"), (4, "C")):
        state = enqueue_job(state, job(ticket, channel, str(ticket)))
    state, _ = start_jobs(state, ConcurrencyLimit(2, 1))

    assert count_ahead(state, 4) == 3
    assert count_ahead(mark_answered(state, 1), 4) == 2
