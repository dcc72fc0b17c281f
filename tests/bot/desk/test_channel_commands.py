"""What admins write to change what holds in a channel."""

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
FILE = ChannelSettings(CHANNEL, ("handbook", "kitchen"), "wikichat", "every", ask=("slack:T1/U1", "slack:T1/U2"))
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
    ],
)
def test_a_channel_is_narrowed_or_given_back_to_the_file(key, written, expected) -> None:
    """What the file says anyway is not kept."""
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
        ("effort", "all", "quick, normal, thorough"),
        ("effort", "thorough", "only narrow"),
        ("ask", "<@U9>", "only narrow"),
        ("ask", "slack:T2/U1", "only narrow"),
        ("readers", "*", "no setting"),
        ("id", "slack:T1/C2", "no setting"),
    ],
)
def test_what_would_widen_it_or_is_nothing_is_refused_with_why(key, written, why) -> None:
    """In a plain sentence."""
    with pytest.raises(ChangeRefused, match=why.replace("*", ".")):
        plan_channel_change(FILE, THERE, key, written, language="en")


@pytest.mark.parametrize(("key", "written"), [("answer", "every"), ("ephemeral", "off"), ("paused", "off")])
def test_what_the_file_holds_back_is_not_let_go(key, written) -> None:
    """In the admin's language."""
    strict = ChannelSettings(CHANNEL, ephemeral=True, paused=True)

    with pytest.raises(ChangeRefused, match="nur einschränken"):
        plan_channel_change(strict, THERE, key, written, language="de")


def test_a_refusal_names_no_corpus_that_cannot_be_read_there() -> None:
    """Not one that the file keeps from the channel, nor one that its readers do."""
    with pytest.raises(ChangeRefused) as raised:
        plan_channel_change(FILE, ("kitchen",), "corpora", "board", language="en")

    assert "kitchen" in str(raised.value)
    assert "handbook" not in str(raised.value)


@pytest.fixture
async def app(tmp_path):
    """A house with a corpus that everybody may read, and one that nobody may."""
    with opened(tmp_path) as store:
        for name in ("handbook", "board"):
            await store.manifest.finish(name, datetime.now(UTC))
        corpus = [{"name": "handbook", "readers": ["*"]}, {"name": "board"}]
        channel = [{"id": CHANNEL, "answer": "every"}]
        yield App(Settings(home=tmp_path, corpus=corpus, channel=channel), store, **kept(store))


async def test_a_change_holds_at_once_and_is_on_record(app) -> None:
    """With who made it and what held before; taken back, the file holds again."""
    told = await change_channel(app, CHANNEL, "Answer ", " mention", ADMIN, is_admin=lambda _: True, language="en")
    held = resolve_channel_settings(app.settings, await app.overrides.of(CHANNEL), CHANNEL)
    await change_channel(app, CHANNEL, "answer", "reset", ADMIN, is_admin=lambda _: True, language="en")

    assert told == "In this channel answer is now: mention."
    assert held.answer == "mention"
    assert await app.overrides.of(CHANNEL) == {}
    entries = await app.audit.turn(CHANNEL)
    assert [entry.kind for entry in entries] == [EntryKind.SETTING] * 2
    assert [(entry.body["was"], entry.body["now"], entry.body["by"]) for entry in entries] == [
        ("every", "mention", "slack:T1/U1"),
        ("mention", None, "slack:T1/U1"),
    ]


async def test_a_corpus_without_readers_there_is_not_named_to_an_admin_either(app) -> None:
    """It is not told apart from none."""
    with pytest.raises(ChangeRefused, match="There are: handbook") as raised:
        await change_channel(app, CHANNEL, "corpora", "secret", ADMIN, is_admin=lambda _: True, language="en")

    assert "board" not in str(raised.value)
    with pytest.raises(ChangeRefused, match="no corpus “board”"):
        await change_channel(app, CHANNEL, "corpora", "board", ADMIN, is_admin=lambda _: True, language="en")


async def test_only_an_admin_changes_a_channel_and_only_there(app) -> None:
    """Nothing is kept otherwise."""
    with pytest.raises(ChangeRefused, match="admin"):
        await change_channel(app, CHANNEL, "paused", "on", ADMIN, is_admin=lambda _: False, language="en")
    with pytest.raises(ChangeRefused, match="in that channel"):
        await change_channel(app, "slack:T1/C2", "paused", "on", ADMIN, is_admin=lambda _: True, language="en")

    assert await app.overrides.of(CHANNEL) == {}
    assert await app.audit.turn(CHANNEL) == ()
