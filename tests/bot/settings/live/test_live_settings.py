"""Which changes to the settings take effect while a server runs."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from bot.settings.live.live_settings import find_effect, list_changes, list_scope, take_live
from bot.settings.settings_errors import _find_models
from bot.settings.tables.field_types import Effect
from bot.settings.tables.settings_tables import Settings

CORPUS = {"name": "handbook", "visible_to": ["*"], "source": {"type": "folder", "path": "/handbook"}}


def find_unmarked(table: type[BaseModel], prefix: str = "", inherited: Effect | None = None) -> Iterator[str]:
    for name, field in table.model_fields.items():
        effect, inner = find_effect(field, inherited), list(_find_models(field.annotation))
        for model in inner:
            yield from find_unmarked(model, f"{prefix}{name}.", effect)
        if not inner and effect is None:
            yield prefix + name


def test_every_settings_key_states_when_its_change_takes_effect() -> None:
    assert list(find_unmarked(Settings)) == []


@pytest.mark.parametrize(("changed", "keys", "waiting"), [
    ({"limits": {"seconds": 5}, "model": {"name": "x"}}, ["limits.seconds"], ["model.name"]),
    ({"desk": {"at_once": 2, "grace_seconds": 2}}, ["desk.at_once"], ["desk.grace_seconds"]),
    ({"corpus": [CORPUS, {"name": "hr"}]}, ["corpus.hr (new)"], []),
    ({"corpus": []}, ["corpus.handbook (gone)"], []),
    ({"corpus": [{**CORPUS, "dense": "lazy", "visible_to": []}]}, ["visible_to", "dense"], []),
    ({"corpus": [{**CORPUS, "source": {"type": "folder", "path": "/other"}}]}, ["source.path"], []),
    ({"corpus": [{**CORPUS, "source": None}]}, ["source"], []),
    ({"channel": [{"id": "slack:T1/C1", "paused": True}]}, ["channel.slack:T1/C1 (new)"], []),
    ({"slack": {"guests": True, "bot_token": "xoxb-new"}}, ["slack.guests"], ["slack.bot_token"]),
    ({"discord": {"deny": ["1"], "token": "new"}}, ["discord.deny"], ["discord.token"]),
    ({"search_engine": {"visible_to": ["*"], "seconds": 3}}, ["search_engine.visible_to"], ["search_engine.seconds"]),
    ({"home": "/elsewhere"}, [], ["home"]),
])  # fmt: skip
def test_changed_keys_take_effect_at_once_or_at_the_next_start_as_declared(
    changed: dict[str, Any], keys: list[str], waiting: list[str]
) -> None:
    running = Settings.model_validate({"corpus": [CORPUS]})
    changed_settings = Settings.model_validate({"corpus": [CORPUS], **changed})
    taken = take_live(running, changed_settings)
    took, left = list_changes(running, taken), list_changes(taken, changed_settings)

    assert [change.key.removeprefix("corpus.handbook.") for change in took] == keys or not keys
    assert [change.key for change in left] == waiting
    assert all(change.effect.live for change in took)
    assert not any(change.effect.live for change in left)


def test_changed_order_of_corpora_is_listed() -> None:
    before, after = (Settings.model_validate({"corpus": [{"name": name} for name in names]}) for names in ("ab", "ba"))
    assert [change.key for change in list_changes(before, after)] == ["corpus (order)"]


def test_scope_lists_the_values_that_decide_access() -> None:
    values = {"corpus": [CORPUS], "channel": [{"id": "slack:T1/C1", "corpora": ["handbook"]}]}
    scope = list_scope(Settings.model_validate(values))
    assert scope.items() >= {"slack.guests": False}.items()
    assert {key: value for key, value in scope.items() if value} == {
        "corpus.handbook.visible_to": ["*"],
        "channel.slack:T1/C1.corpora": ["handbook"],
    }
