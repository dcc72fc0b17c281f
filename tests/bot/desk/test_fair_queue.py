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

rooms = st.builds(ConcurrencyLimit, st.integers(1, 4), st.integers(1, 3))
places = st.tuples(st.sampled_from("ABCD"), st.sampled_from("xyz"))
events = st.lists(st.one_of(places, st.integers(0, 50)), max_size=60)
"""A place asks a question; a number picks one of those under way, which is answered, or leaves."""


def taken(ticket, channel, conversation):
    return QueuedJob(ticket, channel, f"{channel}/{conversation}")


def history(room, happening):
    """Run events through the scheduler; return each state with the jobs started in it, and the last state."""
    lanes, states, starts, ticket = SchedulerState(), [], [], 0
    for event in happening:
        under_way = (*lanes.answering, *lanes.delivering)
        if isinstance(event, tuple):
            ticket += 1
            lanes = enqueue_job(lanes, taken(ticket, *event))
        elif under_way:
            chosen = under_way[event % len(under_way)]
            lanes = (
                mark_answered(lanes, chosen) if chosen in lanes.answering and event % 2 else remove_job(lanes, chosen)
            )
        lanes, new = start_jobs(lanes, room)
        starts.append(new)
        states.append(lanes)
    return states, starts, lanes


@given(rooms, events)
def test_concurrency_limits_are_kept(room, happening):
    states, _, _ = history(room, happening)

    for lanes in states:
        assert len(lanes.answering) <= room.at_once
        channels = Counter(entry.channel for entry in lanes.answering.values())
        assert max(channels.values(), default=0) <= room.per_channel


@given(rooms, events)
def test_one_question_of_a_conversation_runs_at_a_time(room, happening):
    states, _, _ = history(room, happening)

    for lanes in states:
        under_way = [*lanes.answering.values(), *lanes.delivering.values()]
        assert len({entry.conversation for entry in under_way}) == len(under_way)


def in_order(entries):
    """Return whether these entries are in the order in which they were submitted."""
    tickets = [entry.ticket for entry in entries]
    return tickets == sorted(tickets)


@given(rooms, events)
def test_questions_of_a_conversation_start_in_order(room, happening):
    _, steps, _ = history(room, happening)
    starts = [entry for new in steps for entry in new]

    for place in {entry.conversation for entry in starts}:
        assert in_order(entry for entry in starts if entry.conversation == place)
    for channel in "ABCD" if room.per_channel == 1 else "":
        assert in_order(entry for entry in starts if entry.channel == channel)


@given(rooms, events)
def test_only_busy_conversations_are_passed(room, happening):
    states, starts, _ = history(room, happening)

    for lanes, new in zip(states, starts, strict=True):
        busy = {entry.conversation for entry in (*lanes.answering.values(), *lanes.delivering.values())}
        for entry in new:
            earlier = [other for other in lanes.waiting.get(entry.channel, ()) if other.ticket < entry.ticket]
            assert all(other.conversation in busy for other in earlier)


@given(rooms, events)
def test_free_capacity_is_used(room, happening):
    states, _, _ = history(room, happening)

    for lanes in states:
        if len(lanes.answering) == room.at_once:
            continue
        busy = Counter(entry.channel for entry in lanes.answering.values())
        talking = {entry.conversation for entry in (*lanes.answering.values(), *lanes.delivering.values())}
        for channel, line in lanes.waiting.items():
            free = line if room.per_channel > 1 else line[:1]
            assert busy[channel] == room.per_channel or all(entry.conversation in talking for entry in free)


def test_follow_up_does_not_delay_other_threads():
    lanes = enqueue_job(
        enqueue_job(enqueue_job(SchedulerState(), taken(1, "A", "x")), taken(2, "A", "x")), taken(3, "A", "y")
    )

    _, wide = start_jobs(lanes, ConcurrencyLimit(4, 2))
    _, narrow = start_jobs(mark_answered(start_jobs(lanes, ConcurrencyLimit(4, 1))[0], 1), ConcurrencyLimit(4, 1))

    assert [entry.ticket for entry in wide] == [1, 3]
    assert narrow == ()


@given(rooms, events)
def test_every_waiting_question_starts_eventually(room, happening):
    _, _, lanes = history(room, happening)
    waiting = {entry.ticket for line in lanes.waiting.values() for entry in line}

    late = set()
    while lanes.answering or lanes.delivering:
        lanes = remove_job(lanes, next(iter((*lanes.answering, *lanes.delivering))))
        lanes, new = start_jobs(lanes, room)
        late |= {entry.ticket for entry in new}

    assert late == waiting
    assert not lanes.waiting


@given(st.integers(1, 3), st.integers(1, 30))
def test_channels_take_turns(quiet, load):
    room, lanes = ConcurrencyLimit(1, 1), SchedulerState()
    for ticket in range(load):
        lanes = enqueue_job(lanes, taken(ticket, "busy", str(ticket)))
    for ticket in range(quiet):
        lanes = enqueue_job(lanes, taken(load + ticket, f"quiet{ticket}", "x"))

    order = []
    for _ in range(load + quiet):
        lanes, (entry,) = start_jobs(lanes, room)
        order.append(entry.channel)
        lanes = remove_job(lanes, entry.ticket)

    assert order[0] == "busy"
    assert order[1 : quiet + 1] == [f"quiet{number}" for number in range(quiet)]


def test_delivery_does_not_count_towards_the_limit():
    room = ConcurrencyLimit(1, 1)
    lanes = enqueue_job(
        enqueue_job(enqueue_job(SchedulerState(), taken(1, "A", "x")), taken(2, "B", "x")), taken(3, "A", "x")
    )
    lanes, first = start_jobs(lanes, room)

    lanes, second = start_jobs(mark_answered(lanes, 1), room)
    lanes, third = start_jobs(mark_answered(lanes, 2), room)
    lanes, fourth = start_jobs(remove_job(lanes, 1), room)

    assert [[entry.ticket for entry in new] for new in (first, second, third, fourth)] == [[1], [2], [], [3]]


def test_position_counts_earlier_unanswered_questions():
    lanes = SchedulerState()
    for ticket, channel in ((1, "A"), (2, "B"), (3, "A"), (4, "C")):
        lanes = enqueue_job(lanes, taken(ticket, channel, str(ticket)))
    lanes, _ = start_jobs(lanes, ConcurrencyLimit(2, 1))

    assert count_ahead(lanes, 4) == 3
    assert count_ahead(mark_answered(lanes, 1), 4) == 2
