"""The tables of the desk, of channels, budgets and the nightly refresh."""

from datetime import time
from pathlib import Path

import pytest

from bot.cli.setup.init_command import write_starter
from bot.settings.errors import SettingsError
from bot.settings.settings_reader import load_settings
from bot.settings.tables.settings_tables import ChannelValues, LimitSettings
from pipeline.kit import Limits

CORPORA = "[[corpus]]\nname = 'handbook'\n[[corpus]]\nname = 'wiki'\n"


def _channel(text: str) -> ChannelValues:
    Path("footnote.toml").write_text(f"{CORPORA}[[channel]]\nid = 'slack:T1/C1'\n{text}", encoding="utf-8")
    return load_settings().channel[0]


def test_channel_has_defaults() -> None:
    defaults = {"corpora": None, "system": "", "answer": "mention", "ephemeral": False, "ask": (), "paused": False}
    assert _channel("") == ChannelValues(id="slack:T1/C1", **defaults)


def test_channel_table_is_read() -> None:
    text = "corpora=['wiki']\nsystem='extractive'\nanswer='every'\nephemeral=true\nask=['slack:T1/U1']\npaused=true\n"
    channel = _channel(text)

    assert (channel.corpora, channel.system, channel.answer) == (("wiki",), "extractive", "every")
    assert (channel.ephemeral, channel.ask, channel.paused) == (True, ("slack:T1/U1",), True)


@pytest.mark.parametrize(
    ("written", "read"),
    [("' Brief, as to a friend. '", "Brief, as to a friend."), ("''", None), ("'Plain.'", "Plain.")],
)
def test_channel_has_its_own_tone_or_the_default(written: str, read: object) -> None:
    assert _channel(f"tone = {written}").tone == read


@pytest.mark.parametrize(("written", "read"), [("''", None), ("[]", ())])
def test_unset_corpora_mean_all_and_an_empty_list_means_none(written: str, read: object) -> None:
    assert _channel(f"corpora = {written}").corpora == read


def test_channel_in_the_starter_file_can_be_uncommented() -> None:
    lines = write_starter(Path("footnote.toml")).read_text(encoding="utf-8").splitlines()
    start = lines.index("# [[channel]]")
    table = "\n".join(line.removeprefix("# ") for line in lines[start:])
    Path("footnote.toml").write_text(table, encoding="utf-8")

    assert load_settings().channel == (ChannelValues(id="slack:TEAM/CHANNEL"),)


def test_lists_can_be_set_by_variables_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_CORPUS", '[{"name": "docs", "readers": ["slack:T1/C1"]}]')
    monkeypatch.setenv("FOOTNOTE_CHANNEL", '[{"id": "discord:G1/C1", "corpora": ["docs"], "ask": ["discord:G1/U1"]}]')
    monkeypatch.setenv("FOOTNOTE_DESK__AT_ONCE", "3")
    settings = load_settings()

    assert settings.visible_to == {"docs": ("slack:T1/C1",)}
    assert settings.channel == (ChannelValues(id="discord:G1/C1", corpora=("docs",), ask=("discord:G1/U1",)),)
    assert settings.desk.at_once == 3


def test_study_names_two_different_systems() -> None:
    assert _channel("study = ['wikichat', 'extractive']").systems == ("wikichat", "extractive")
    for study in ("['wikichat']", "['wikichat', '']", "['wikichat', 'wikichat']", "['a', 'b', 'c']"):
        with pytest.raises(SettingsError, match="must name two different systems"):
            _channel(f"study = {study}")


def test_limits_passed_to_a_system_exclude_the_budgets_of_users() -> None:
    assert LimitSettings(questions_per_user=3, cost_per_month=5).kit(student=False) == Limits()


def test_nightly_is_a_time_of_day_or_none() -> None:
    assert load_settings().schedule.at is None
    Path("footnote.toml").write_text("[schedule]\nnightly = '03:05'\n", encoding="utf-8")

    assert load_settings().schedule.at == time(3, 5)
