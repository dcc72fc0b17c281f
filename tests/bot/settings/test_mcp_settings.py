"""Programs that may ask: one line each with name, groups and the token's digest, never the token."""

from pathlib import Path

import pytest

from bot.server.monitoring.server_log import collect_secrets
from bot.settings.errors import SettingsError
from bot.settings.live.live_settings import list_changes, list_scope, take_live
from bot.settings.settings_reader import load_settings
from bot.settings.tables.field_types import RESTART, SCOPE
from bot.settings.tables.network_settings import format_token_line
from bot.settings.tables.settings_tables import Settings
from storage.database.engine import to_json_value

TOKEN, OTHER = "t" * 43, "u" * 43
LINE = format_token_line("anna", ("editors", "staff"), TOKEN)


def read(here: Path, text: str) -> Settings:
    (here / "footnote.toml").write_text(text, encoding="utf-8")
    return load_settings()


def test_a_token_is_known_by_its_digest(here: Path) -> None:
    mcp = read(here, f'[mcp]\ntokens = ["{LINE}", "{format_token_line("bob", (), OTHER)}"]').mcp
    anna, bob = mcp.match_token(TOKEN), mcp.match_token(OTHER)

    assert anna
    assert bob
    assert (anna.name, anna.groups, bob.name, bob.groups) == ("anna", ("editors", "staff"), "bob", ())
    assert mcp.match_token(TOKEN[:-1]) is mcp.match_token("") is mcp.match_token("tökén") is None
    assert TOKEN not in LINE


def test_token_lines_may_be_in_a_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "tokens").write_text(f"{LINE}\n\n{format_token_line('bob', (), OTHER)}\n", encoding="utf-8")
    monkeypatch.setenv("FOOTNOTE_MCP__TOKENS_FILE", str(here / "tokens"))

    assert [token.name for token in load_settings().mcp.tokens] == ["anna", "bob"]


@pytest.mark.parametrize(("lines", "expected"), [
    (["anna secret-token-itself-0123456789"], "footnote mcp token NAME"),
    ([f"anna/x sha256:{'a' * 64}"], "footnote mcp token NAME"),
    ([LINE, LINE], "two lines with the same name or the same token"),
])  # fmt: skip
def test_invalid_line_is_reported_without_its_text(here: Path, lines: list[str], expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(here, f"[mcp]\ntokens = {lines!r}")

    assert expected in str(caught.value)
    assert "secret-token" not in str(caught.value)
    assert "sha256:a" not in str(caught.value)


@pytest.mark.parametrize("name", ["a b", "", "a/b", "x" * 61])
def test_invalid_token_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names are letters"):
        format_token_line(name, (), TOKEN)


@pytest.mark.parametrize(("reader", "good"), [("mcp:tokens/anna", True), ("mcp:groups/a-b", True), ("mcp:anna", False)])
def test_readers_of_a_corpus_can_be_programs_named_by_token_or_group(here: Path, reader: str, *, good: bool) -> None:
    text = f"[[corpus]]\nname = 'handbook'\nvisible_to = ['{reader}']"
    if good:
        assert read(here, text).readers == {reader}
    else:
        with pytest.raises(SettingsError, match="mcp:tokens/NAME"):
            read(here, text)


def test_changed_tokens_apply_at_once_and_are_recorded(here: Path) -> None:
    before, after = read(here, ""), read(here, f'[mcp]\nenabled = true\ntokens = ["{LINE}"]')
    effects = {change.key: change.effect for change in list_changes(before, after)}

    assert take_live(before, after).mcp.match_token(TOKEN)
    assert effects == {"mcp.enabled": RESTART, "mcp.tokens": SCOPE}
    recorded = to_json_value(list_scope(after)["mcp.tokens"])
    assert [(token["name"], token["groups"]) for token in recorded] == [("anna", ["editors", "staff"])]
    assert not collect_secrets(after) & {"anna", "editors"}
