"""Builds interactions: a command's options, a context menu's target, a modal's values."""

from collections.abc import Mapping
from typing import Any

from tests.platforms.discord.components import LABEL, SELECT, TEXT, nested
from tests.platforms.discord.jsons import interaction_json, message_json
from tests.platforms.discord.state import BOT, Interaction


def hand_out(
    discord: Any, kind: int, user: str, channel: str, data: dict[str, Any], *, message: str = "", name: str = ""
) -> Interaction:
    """Send the event of an interaction, and return it."""
    state, place = discord.state, discord.state.channels[channel]
    number = state.snowflake()
    made = Interaction(
        number, f"{number}.FAKEINTERACTIONNEVERLOGGED", kind, user, channel, place.guild, data, discord.clock.now()
    )
    made.message, made.name = message, name
    state.interactions[number] = made
    ours = BOT in (state.guilds[place.guild].members if place.guild else place.members)
    body = interaction_json(state, made, installed="" if ours else user)
    # For their users' installations, interactions go where DMs go.
    made.sessions = discord.gateway.send_event("INTERACTION_CREATE", lambda _: body, guild=place.guild if ours else "")
    return made


def _command(discord: Any, name: str, kind: int) -> dict[str, Any]:
    found = [command for command in discord.state.commands if command["name"] == name and command["type"] == kind]
    assert found, f"no command {name} is registered"
    return found[0]  # type: ignore[no-any-return]


def slash(discord: Any, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a slash command. Its options must be as registered."""
    command = _command(discord, name, 1)
    types = {one["name"]: one["type"] for one in command["options"]}
    missing = {one["name"] for one in command["options"] if one.get("required")} - set(options)
    assert not missing, f"options are missing: {missing}"
    given = [{"name": one, "type": types[one], "value": value} for one, value in options.items()]
    return {"id": command["id"], "name": name, "type": 1, "options": given}


def menu(discord: Any, name: str, target: str) -> dict[str, Any]:
    """Return the data of a message's context menu."""
    command, message = _command(discord, name, 3), discord.state.messages[target]
    resolved = {"messages": {target: message_json(discord.state, message)}}
    return {"id": command["id"], "name": name, "type": 3, "target_id": target, "resolved": resolved}


def submitted(modal: dict[str, Any] | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a modal; fields that were not filled in keep their value."""
    assert modal
    inputs = [one for _, one in nested(modal["components"]) if one.get("custom_id")]
    used = {_given(one["custom_id"], values) for one in inputs}
    assert set(values) <= used, f"there is no such field: {set(values) - used}"
    return {"custom_id": modal["custom_id"], "components": [_part(one, values) for one in modal["components"]]}


def _given(custom_id: str, values: Mapping[str, Any]) -> str:
    return next((value for value in values if custom_id == value or custom_id.endswith(f":{value}")), "")


def _part(label: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    if label["type"] == TEXT:
        return {"type": TEXT, "id": label.get("id", 0)}
    assert label["type"] == LABEL
    field = label["component"]
    if field["type"] == SELECT:
        chosen = [values[name]] if (name := _given(field["custom_id"], values)) else []
        assert chosen or not field.get("required", True), "a client requires this field"
        assert {*chosen} <= {option["value"] for option in field["options"]}, "there is no such option"
        filled = {"type": SELECT, "id": field.get("id", 0), "custom_id": field["custom_id"], "values": chosen}
        return {"type": LABEL, "id": label.get("id", 0), "component": filled}
    value = values.get(_given(field["custom_id"], values), field.get("value") or "")
    assert len(value) <= field.get("max_length", 4_000), "a client takes no longer text"
    assert value or not field.get("required", True), "a client requires this field"
    filled = {"type": field["type"], "id": field.get("id", 0), "custom_id": field["custom_id"], "value": value}
    return {"type": LABEL, "id": label.get("id", 0), "component": filled}
