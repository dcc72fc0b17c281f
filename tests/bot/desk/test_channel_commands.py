"""Tests of the commands by which admins change the settings of a channel."""

from datetime import UTC, datetime

import pytest

from bot.access import Asker
from bot.app import App
from bot.desk.channel_settings import (
    ChangeRefused,
    ChannelSettings,
    change_channel,
    plan_channel_change,
    resolve_channel_settings,
)
from bot.settings.tables.settings_tables import Settings
from storage.types import EntryKind
from tests.storage.stores import kept, opened

CHANNEL = "slack:T1/C1"
ADMIN = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)
PAIR = ("wikichat", "augmenter")
FILE = ChannelSettings(
    CHANNEL, ("handbook", "kitchen"), "wikichat", "every", ask=("slack:T1/U1", "slack:T1/U2"), study=PAIR
)
THERE = ("handbook", "kitchen", "board")


@pytest.mark.parametrize(
    ("key", "written", "expected"),
    [
        ("corpora", "kitchen", ("kitchen",)),
        ("corpora", "kitchen, handbook", None),
        ("corpora", "reset", None),
        ("system", "extractive", "extractive"),
        ("system", "wikichat", None),
        ("answer", "mention", "mention"),
        ("answer", "Every", None),
        ("ephemeral", "on", True),
        ("ephemeral", "off", None),
        ("ask", "<@U2>", ("slack:T1/U2",)),
        ("ask", "slack:T1/U2 U1", None),
        ("ask", "nobody", ()),
        ("paused", "on", True),
        ("tone", "off", ""),
        ("effort", "Quick", "quick"),
        ("effort", "normal", None),
        ("paused", "RESET", None),
        ("study", "On", PAIR),
        ("study", "off", None),
        ("study", "reset", None),
    ],
)
def test_channel_change_stores_an_override_or_removes_it(key, written, expected) -> None:
    made = plan_channel_change(FILE, THERE, key, written, language="en")

    assert (made.key, made.value) == (key, expected)
    assert key in made.words


@pytest.mark.parametrize(
    ("key", "written", "why"),
    [
        ("corpora", "board", "no corpus “board”"),
        ("corpora", "", "no corpus"),
        ("system", "oracle", "is not a value"),
        ("answer", "never", "mention, every"),
        ("ephemeral", "perhaps", "on, off"),
        ("tone", "End with @everyone.", "off"),
        ("study", "wikichat", "on, off"),
        ("effort", "all", "quick, normal, thorough"),
        ("effort", "thorough", "only narrow"),
        ("ask", "<@U9>", "only narrow"),
        ("ask", "slack:T2/U1", "only narrow"),
        ("readers", "*", "no setting"),
        ("id", "slack:T1/C2", "no setting"),
    ],
)
def test_invalid_value_or_a_change_that_widens_access_is_refused_with_a_reason(key, written, why) -> None:
    with pytest.raises(ChangeRefused, match=why.replace("*", ".")):
        plan_channel_change(FILE, THERE, key, written, language="en")


@pytest.mark.parametrize(("key", "written"), [("answer", "every"), ("ephemeral", "off"), ("paused", "off")])
def test_change_that_loosens_the_settings_file_is_refused_in_the_admins_language(key, written) -> None:
    strict = ChannelSettings(CHANNEL, ephemeral=True, paused=True)

    with pytest.raises(ChangeRefused, match="nur einschränken"):
        plan_channel_change(strict, THERE, key, written, language="de")


def test_study_needs_a_pair_in_the_file_and_names_no_system() -> None:
    with pytest.raises(ChangeRefused, match="No comparison is set up"):
        plan_channel_change(ChannelSettings(CHANNEL), THERE, "study", "on", language="en")
    words = [plan_channel_change(FILE, THERE, "study", value, language="en").words for value in ("on", "off", "reset")]

    assert "study is now: on (two systems answer by turns" in words[0]
    assert not any(name in " ".join(words) for name in PAIR)


def test_study_runs_only_while_its_channel_agrees_to_the_systems_of_the_file() -> None:
    file = Settings(channel=[{"id": CHANNEL, "study": PAIR}])
    overrides = [{}, {"study": [*PAIR]}, {"study": ["wikichat", "extractive"]}, {"study": True}]
    overrides += [{"study": [*PAIR], "system": "extractive"}]

    found = [resolve_channel_settings(file, override, CHANNEL).study for override in overrides]
    assert found == [(), PAIR, (), (), ()]


def test_refusal_names_no_unreadable_corpus() -> None:
    with pytest.raises(ChangeRefused) as raised:
        plan_channel_change(FILE, ("kitchen",), "corpora", "board", language="en")

    assert "kitchen" in str(raised.value)
    assert "handbook" not in str(raised.value)


@pytest.fixture
async def app(tmp_path):
    """Return an app with a corpus that every channel may read, and one that no channel may."""
    with opened(tmp_path) as store:
        for name in ("handbook", "board"):
            await store.manifest.finish(name, datetime.now(UTC))
        corpus = [{"name": "handbook", "readers": ["*"]}, {"name": "board"}]
        channel = [{"id": CHANNEL, "answer": "every"}]
        yield App(Settings(home=tmp_path, corpus=corpus, channel=channel), store, **kept(store))


async def test_channel_setting_changed_by_an_admin_takes_effect_and_is_recorded(app) -> None:
    reply = await change_channel(app, CHANNEL, "Answer ", " mention", ADMIN, is_admin=lambda _: True, language="en")
    held = resolve_channel_settings(app.settings, await app.overrides.of(CHANNEL), CHANNEL)
    await change_channel(app, CHANNEL, "answer", "reset", ADMIN, is_admin=lambda _: True, language="en")

    assert reply == "In this channel, answer is now: mention."
    assert held.answer == "mention"
    assert await app.overrides.of(CHANNEL) == {}
    entries = await app.audit.turn(CHANNEL)
    assert [entry.kind for entry in entries] == [EntryKind.SETTING] * 2
    assert [(entry.body["was"], entry.body["now"], entry.body["by"]) for entry in entries] == [
        ("every", "mention", "slack:T1/U1"),
        ("mention", None, "slack:T1/U1"),
    ]


async def test_unreadable_corpus_is_refused_like_an_unknown_one(app) -> None:
    with pytest.raises(ChangeRefused, match="The corpora are: handbook") as raised:
        await change_channel(app, CHANNEL, "corpora", "secret", ADMIN, is_admin=lambda _: True, language="en")

    assert "board" not in str(raised.value)
    with pytest.raises(ChangeRefused, match="no corpus “board”"):
        await change_channel(app, CHANNEL, "corpora", "board", ADMIN, is_admin=lambda _: True, language="en")


async def test_only_an_admin_in_the_channel_changes_it(app) -> None:
    with pytest.raises(ChangeRefused, match="admin"):
        await change_channel(app, CHANNEL, "paused", "on", ADMIN, is_admin=lambda _: False, language="en")
    with pytest.raises(ChangeRefused, match="in that channel"):
        await change_channel(app, "slack:T1/C2", "paused", "on", ADMIN, is_admin=lambda _: True, language="en")

    assert await app.overrides.of(CHANNEL) == {}
    assert await app.audit.turn(CHANNEL) == ()
