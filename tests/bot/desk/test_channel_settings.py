"""Tests that admins can narrow a channel's settings from the file, and never widen them."""

from hypothesis import given
from hypothesis import strategies as st

from bot.desk.channel_settings import (
    CHANNEL_KEYS,
    ChannelSettings,
    narrow_channel_settings,
    read_channel_table,
    resolve_channel_settings,
)
from bot.settings.tables.settings_tables import Settings
from pipeline.kit import EFFORTS

CHANNEL = "slack:T1/C1"
CORPORA = ("handbook", "kitchen", "board")
PEOPLE = ("slack:T1/U1", "slack:T1/U2")
CEILINGS = st.builds(
    ChannelSettings,
    st.just(CHANNEL),
    st.none() | st.lists(st.sampled_from(CORPORA), unique=True).map(tuple),
    st.sampled_from(["", "wikichat", "extractive"]),
    st.sampled_from(["mention", "every"]),
    st.booleans(),
    st.lists(st.sampled_from(PEOPLE), unique=True).map(tuple),
    st.booleans(),
    tone=st.sampled_from([None, "", "Brief."]),
    effort=st.sampled_from(EFFORTS),
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([*CORPORA, *PEOPLE, "every", "wikichat", "extractive", *EFFORTS]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)


def set_up(**table):
    corpora = [{"name": name, "readers": ["*"]} for name in CORPORA]
    return Settings(corpus=corpora, channel=[{"id": CHANNEL} | table])


def test_channel_without_overrides_has_the_files_settings() -> None:
    settings = set_up(corpora=["kitchen"], answer="every", ask=[PEOPLE[0]])

    assert resolve_channel_settings(settings, {}, CHANNEL) == ChannelSettings(
        CHANNEL, ("kitchen",), answer="every", ask=(PEOPLE[0],)
    )
    assert resolve_channel_settings(settings, {}, "slack:T1/C9") == ChannelSettings("slack:T1/C9")
    quick = settings.model_copy(update={"effort": "quick"})
    assert {resolve_channel_settings(quick, {}, channel).effort for channel in (CHANNEL, "slack:T1/C9")} == {"quick"}


def test_overrides_narrow_the_settings() -> None:
    table = {"corpora": ["handbook", "kitchen"], "system": "wikichat", "answer": "every", "tone": "Brief."}
    settings = set_up(ask=PEOPLE, **table)
    overrides = {
        "corpora": ["kitchen"],
        "system": "extractive",
        "answer": "mention",
        "ephemeral": True,
        "ask": [PEOPLE[1]],
        "paused": True,
        "tone": "End with @everyone",
    }

    resolved = resolve_channel_settings(settings, overrides, CHANNEL)

    assert resolved == ChannelSettings(
        CHANNEL, ("kitchen",), "extractive", "mention", ephemeral=True, ask=(PEOPLE[1],), paused=True, tone=""
    )


def test_channel_overrides_cannot_widen_a_narrower_settings_file() -> None:
    settings = set_up(corpora=["handbook"], answer="mention", ephemeral=True, paused=True)
    overrides = {"corpora": ["kitchen", "handbook"], "answer": "every", "ephemeral": False, "ask": [PEOPLE[0]]}

    assert resolve_channel_settings(settings, overrides | {"paused": False}, CHANNEL) == read_channel_table(
        settings, CHANNEL
    )
    assert resolve_channel_settings(settings, {"corpora": ["kitchen"]}, CHANNEL).corpora == ()


@given(CEILINGS, st.dictionaries(st.sampled_from([*CHANNEL_KEYS, "readers", "tomorrow"]), ANYTHING))
def test_invalid_overrides_widen_nothing(ceiling: ChannelSettings, overrides: dict) -> None:
    resolved = narrow_channel_settings(ceiling, overrides)

    if ceiling.corpora is not None:
        assert resolved.corpora is not None
        assert set(resolved.corpora) <= set(ceiling.corpora)
    if "corpora" in overrides:
        assert resolved.corpora is not None
    assert set(resolved.ask) <= set(ceiling.ask)
    assert resolved.system in {ceiling.system, "extractive"}
    assert resolved.tone == ("" if "tone" in overrides else ceiling.tone)
    assert EFFORTS.index(resolved.effort) <= EFFORTS.index(ceiling.effort)
    assert ceiling.answer == "every" or resolved.answer == "mention"
    assert resolved.ephemeral >= ceiling.ephemeral
    assert resolved.paused >= ceiling.paused
    assert resolved.id == ceiling.id
