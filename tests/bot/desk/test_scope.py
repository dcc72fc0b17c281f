"""No passage, title or word leaves its scope, however readers, channels and commands are set, whoever asks where."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.access import Asker
from bot.answering.question_answering import answer
from bot.answering.turn_record import read_turn_record
from bot.desk.channel_settings import resolve_channel_settings
from bot.desk.memory import recall_conversation
from bot.types import Place, Question, TurnRequest
from pipeline.types import PassagesFound
from storage.types import QueuedQuestion
from tests.bot.desk.corpora_app import (
    CHANNEL,
    MARKS,
    START,
    FakeHistory,
    RecordedConversation,
    make_message,
    open_corpora_app,
)
from tests.bot.desk.corpora_app import settings as set_up
from tests.thorough import sample

PLACES = ("slack:T1/C1", "slack:T1/C2", "slack:T1/C3")
ASKERS = [
    replace(CHANNEL, channel=channel, user=user, kind=kind, shared_with_other_organisations=shared)
    for user in ("U1", "U2")
    for channel, kind in (("C1", "channel"), ("C2", "channel"), ("C3", "channel"), ("D1", "dm"))
    for shared in (False, True)
]
READERS = st.lists(st.sampled_from(["*", *PLACES, "slack:T1/U1", "slack:T1/U2", "discord:T1/C1"]), max_size=3)
NAMES = st.lists(st.sampled_from(sorted(MARKS)), unique=True)


@dataclass
class Overrides:
    """What admins set, by channel."""

    kept: Mapping[str, Mapping[str, Any]]

    async def of(self, channel):
        """Return what is set for a channel."""
        return self.kept.get(channel, {})


@pytest.fixture
async def talk(tmp_path):
    """A conversation in which every corpus was spoken of, when all could be read."""
    async with open_corpora_app(tmp_path) as app:
        talk = RecordedConversation(app)
        for name, mark in MARKS.items():
            await talk.ask(f"Is the {mark} open?", within=(name,))
        await talk.ask("Is the samovar open, or the merger?", system="abstaining")
        await talk.ask("And the quayside after the merger?", within=("handbook", "board"))
        yield talk


def expected(asker: Asker, readers, tables, overrides) -> set[str]:
    """Say again, in the plainest way, what may be read: by the readers, the file's table, and the command's."""
    place = f"slack:T1/{asker.channel if asker.kind == 'channel' else asker.user}"
    own = () if asker.shared_with_other_organisations else ("*",)
    allowed = {name for name in MARKS if set(readers[name]) & {place, *own}}
    for narrowing in (tables, overrides):
        chosen = narrowing.get(f"slack:T1/{asker.channel}")
        allowed &= set(MARKS) if chosen is None else set(chosen)
    return allowed


def seen_in(texts) -> set[str]:
    """Return the corpora whose words stand in these texts."""
    return {name for name, mark in MARKS.items() if any(mark in text for text in texts)}


@given(
    st.fixed_dictionaries(dict.fromkeys(sorted(MARKS), READERS)),
    st.dictionaries(st.sampled_from(PLACES), NAMES),
    st.dictionaries(st.sampled_from(PLACES), NAMES),
    st.sampled_from(ASKERS),
)
@settings(max_examples=sample(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_answers_and_memory_stay_within_the_scope(
    talk: RecordedConversation, readers, tables, overrides, asker
) -> None:
    allowed = expected(asker, readers, tables, overrides)
    channels = [{"id": channel, "corpora": names} for channel, names in tables.items()]
    app = replace(
        talk.app,
        settings_source=set_up(talk.app.settings.home, readers, channel=channels),
        overrides=Overrides({channel: {"corpora": names} for channel, names in overrides.items()}),
    )
    question, row = asking(talk, asker)

    turns = await recall_conversation(app, platform(talk), question, row)

    assert seen_in(text for turn in turns for text in (turn.text, *turn.titles)) <= allowed
    assert {name for turn in turns for name in turn.corpora} <= allowed
    held = resolve_channel_settings(
        app.settings, await app.overrides.of(question.place.channel_id), question.place.channel_id
    )
    for system in ("quoting", "abstaining"):
        events = []
        asked = TurnRequest("Is it open at ten?", asker, system=system, within=held.corpora, earlier=turns)
        done = await answer(app, asked, events.append)
        hits = [hit for event in events if isinstance(event, PassagesFound) for hit in event.hits]
        assert {hit.passage.corpus for hit in (*hits, *done.answer.nearest)} <= allowed
        assert {citation.corpus for citation in done.answer.citations} <= allowed
        assert seen_in([done.text]) <= allowed
        turn = read_turn_record(await app.audit.turn(done.answer_id))
        assert turn.corpora <= allowed
        assert bool(hits) == bool(allowed)


async def test_unlimited_scope_remembers_everything(talk) -> None:
    question, row = asking(talk, CHANNEL)

    turns = await recall_conversation(talk.app, platform(talk), question, row)

    assert len(turns) == 12
    assert seen_in(turn.text for turn in turns if turn.speaker == "bot") == set(MARKS)


def asking(talk: RecordedConversation, asker: Asker) -> tuple[Question, QueuedQuestion]:
    """Ask in the same conversation from elsewhere, which no platform would, and the desk must bear."""
    place = Place("slack", asker.workspace, asker.channel, "1")
    at = START.replace(hour=20)
    question = Question("next", "ask", "And?", asker, place, talk.name, at, "next")
    row = QueuedQuestion(
        ticket=1_000_000,
        key="next",
        channel=place.channel_id,
        conversation=talk.name,
        user=f"slack:T1/{asker.user}",
        message="next",
        body={},
        handle="",
        state="running",
        outcome="",
        taken_at=at,
        turn_id="",
        sending=False,
        posted=(),
        owner="",
        lease_until=None,
    )
    return question, row


def platform(talk: RecordedConversation) -> FakeHistory:
    """Hand over all that was posted, and messages of ours that the log does not know."""
    posted = [
        message
        for number in range(1, talk.asked + 1)
        for message in (
            make_message(f"{talk.name}/q{number}", "Is the merger open?", 10 * number),
            make_message(f"{talk.name}/a{number}", "The merger is open.", 10 * number + 1, user=""),
        )
    ]
    return FakeHistory(
        (
            make_message("older", "The merger was off, the samovar and the quayside too.", 1, user=""),
            *posted,
            make_message("y", "Well.", 2),
        )
    )
