"""Changing single values of a settings file leaves everything else in it unchanged."""

import tomllib
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.setup.settings_edit import add_entry, set_value
from bot.settings.errors import SettingsError
from bot.settings.settings_lines import format_toml

STARTER = resources.files("bot.settings").joinpath("starter.toml").read_text(encoding="utf-8")
OWN = """\
# Ours.
home = "data"  # on the large disk

# Who may ask.
[limits]
seconds = 30

[[corpus]]
name = "handbook"
readers = ["slack:T1/C1",
           "slack:T1/C2"]
[corpus.source]
type = "folder"
path = "handbook"

[[corpus]]
name = "wiki"
"""
VALUES = st.recursive(
    st.text(st.characters(codec="utf-8"), max_size=8) | st.booleans() | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b-1"]), inner, max_size=2),
    max_leaves=6,
)
KEYS: list[tuple[str | int, ...]] = [
    *(("timezone",), ("home",), ("limits", "seconds"), ("limits", "passages"), ("discord", "servers")),
    *((("corpus", 0, "visible_to")), ("corpus", 1, "visible_to"), ("corpus", 0, "source", "path")),
]


@given(st.sampled_from([OWN, "", "\n", "# Only this."]), st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=4))
def test_set_value_changes_only_its_key(text: str, changes: list[tuple[tuple[str | int, ...], Any]]) -> None:
    expected = tomllib.loads(text)
    for key, value in changes:
        if "corpus" in key and not expected.get("corpus"):
            continue
        text = set_value(text, key, value)
        table = expected
        for part in key[:-1]:
            table = table[part] if isinstance(part, int) else table.setdefault(part, {})
        table.pop("readers", None) if key[-1] == "visible_to" else None
        table[key[-1]] = value

    assert tomllib.loads(text) == expected
    assert ("# Ours." in text) == (expected.get("corpus") is not None)


@given(VALUES)
def test_format_toml_writes_valid_toml(value: Any) -> None:
    assert tomllib.loads(f"x = {format_toml(value)}") == {"x": value}


def test_set_value_changes_one_line_of_the_starter_file() -> None:
    changed = set_value(STARTER, ("schedule", "nightly"), "03:00")
    differing = [(old, new) for old, new in zip(STARTER.splitlines(), changed.splitlines(), strict=True) if old != new]

    assert differing == [('nightly = ""', 'nightly = "03:00"')]


def test_add_entry_appends_a_table() -> None:
    text = add_entry(OWN, "corpus", {"name": "travel", "visible_to": ["*"]}, "Documents.")

    assert tomllib.loads(text)["corpus"][2] == {"name": "travel", "visible_to": ["*"]}
    assert text.startswith(OWN)


@pytest.mark.parametrize("text", ["limits = { seconds = 3 }\n", "[limits.seconds]\n"])
def test_set_value_refuses_inline_tables_with_a_hint(text: str) -> None:
    with pytest.raises(SettingsError, match=r"limits\.seconds cannot be changed") as caught:
        set_value(text, ("limits", "seconds"), 5)

    assert "seconds = 5" in caught.value.hint
