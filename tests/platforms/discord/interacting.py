"""Interactions as they are made: a command's options, a context menu's target, a modal's values."""

from collections.abc import Mapping
from typing import Any

from tests.platforms.discord.components import LABEL, TEXT, nested
from tests.platforms.discord.jsons import interaction_json, member_json, message_json, user_json
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
    made.sessions = discord.gateway.tell("INTERACTION_CREATE", lambda _: body, guild=place.guild if ours else "")
    return made


def _command(discord: Any, name: str, kinds: set[int]) -> dict[str, Any]:
    found = [one for one in discord.state.commands if one["name"] == name and one["type"] in kinds]
    assert found, f"no command {name} is registered"
    return found[0]  # type: ignore[no-any-return]


def slash(discord: Any, name: str, options: Mapping[str, Any], *, focused: str = "") -> dict[str, Any]:
    """Return the data of a slash command. Its options must be as registered."""
    root, *within = name.split()
    command = _command(discord, root, {1})
    known, kinds = command["options"], list[int]()
    for part in within:
        (found,) = [one for one in known if one["name"] == part]
        known = found.get("options", [])
        kinds.append(found["type"])
    assert not any(one["type"] in {1, 2} for one in known), "a subcommand must be chosen"
    types = {one["name"]: one["type"] for one in known}
    missing = {one["name"] for one in known if one.get("required")} - set(options)
    assert focused or not missing, f"options are missing: {missing}"
    given: list[dict[str, Any]] = [
        {"name": one, "type": types[one], "value": value, **({"focused": True} if one == focused else {})}
        for one, value in options.items()
    ]
    for part, kind in reversed(list(zip(within, kinds, strict=True))):
        given = [{"name": part, "type": kind, "options": given}]
    users = [str(value) for one, value in options.items() if types[one] == 6]
    resolved = {"resolved": {"users": {one: user_json(discord.state, one) for one in users}}} if users else {}
    return {"id": command["id"], "name": root, "type": 1, "options": given, **resolved}


def menu(discord: Any, name: str, target: str) -> dict[str, Any]:
    """Return the data of a context menu, on a message or a user."""
    state = discord.state
    message = state.messages.get(target)
    command = _command(discord, name, {3} if message else {2})
    data = {"id": command["id"], "name": name, "type": command["type"], "target_id": target}
    if message:
        return {**data, "resolved": {"messages": {target: message_json(state, message)}}}
    guild = next((one.id for one in state.guilds.values() if target in one.members), "")
    resolved: dict[str, Any] = {"users": {target: user_json(state, target)}}
    if guild:
        resolved["members"] = {target: {**member_json(state, guild, target, whole=False), "permissions": "0"}}
    return {**data, "resolved": resolved}


def submitted(modal: dict[str, Any] | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a modal; fields that were not filled in keep their value."""
    assert modal
    inputs = [one for _, one in nested(modal["components"]) if one.get("custom_id")]
    used = {_given(one["custom_id"], values) for one in inputs}
    assert set(values) <= used, f"there is no such field: {set(values) - used}"
    return {"custom_id": modal["custom_id"], "components": [_part(one, values) for one in modal["components"]]}


def _given(custom_id: str, values: Mapping[str, Any]) -> str:
    return next((one for one in values if custom_id == one or custom_id.endswith(f":{one}")), "")


def _part(one: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    if one["type"] == TEXT:
        return {"type": TEXT, "id": one.get("id", 0)}
    if one["type"] == LABEL:
        return {"type": LABEL, "id": one.get("id", 0), "component": _filled(one["component"], values)}
    return {"type": 1, "id": one.get("id", 0), "components": [_filled(inner, values) for inner in one["components"]]}


def _filled(one: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    value = values.get(_given(one["custom_id"], values), one.get("value") or "")
    body = {"type": one["type"], "id": one.get("id", 0), "custom_id": one["custom_id"]}
    if one["type"] != 4:
        return {**body, "values": value or []}
    assert len(value) <= one.get("max_length", 4_000), "a client takes no longer text"
    assert value or not one.get("required", True), "a client requires this field"
    return {**body, "value": value}
