"""What people invoke beside writing: commands, context menus, buttons and modals; pure functions from their JSON.

An interaction's token answers it, and is a secret. A message that somebody asks about comes back from the modal that it
was shown in, so that nothing has to be remembered between the two, and they may shorten it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.access import Asker
from bot.desk.types import Place, Question, TaskKind
from bot.discord.contents import unformatted, words_of
from bot.discord.handles import Handle
from bot.discord.happening import Channel, Us
from bot.discord.reading import channel_of, id_of, ids, moment, name_of, said
from bot.payloads import part, parts
from bot.views.catalog import translate

Json = Mapping[str, Any]

COMMAND, PRESS, SUBMIT = 2, 3, 5
"""Kinds of interactions."""
ASK, CHECK, SOURCES, PRIVACY, CONFIGURE = "ask", "check", "sources", "privacy", "footnote"
FACT_CHECK, ASK_ABOUT, TAKE_BACK = "Fact-check", "Ask about this message", "Take back this answer"
"""The commands and context menus, by their names."""
ABOUT = "footnote:about"
"""The custom id of the modal that asks about a message."""
_QUESTION, _MESSAGE = "question", "message"
LONGEST = 4_000
"""Of what a field of a modal holds."""


@dataclass(frozen=True, slots=True)
class Invoked:
    """An interaction: who did what, where, and how it is answered."""

    id: str
    handle: Handle
    kind: int
    name: str
    """Of a command; of a button or modal its custom id."""
    guild: str
    channel: Channel
    user: str
    locale: str = "en"
    roles: frozenset[str] = frozenset()
    permissions: str = ""
    """Of who invokes, in the channel, as Discord writes them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    """The message that a context menu is of."""
    text: str = ""
    """What that says, in plain words."""
    direct: bool = False
    """Whether it is in a DM with us."""
    installed: bool = True
    """Whether the server installed the app, and not only who uses it."""
    data: Json = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its key at the desk."""
        return f"discord:interaction/{self.id}"

    @property
    def at(self) -> datetime:
        """When it was invoked."""
        return moment(self.id)

    @property
    def private(self) -> bool:
        """Whether whoever asks wants to see the answer alone."""
        return self.options.get("private") is True

    def option(self, name: str) -> str:
        """Return what was written under a name."""
        found = self.options.get(name)
        return found if isinstance(found, str) else ""


def invoked(data: Json, us: Us) -> Invoked | None:
    """Return what somebody invoked; None where nothing can be made of it."""
    number, token, inner = id_of(data, "id"), data.get("token"), part(data, "data")
    member = part(data, "member")
    user = id_of(part(member, "user") or part(data, "user"), "id")
    channel, kind = _where(data), data.get("type")
    if not (number and user and channel and isinstance(token, str) and kind in (COMMAND, PRESS, SUBMIT)):
        return None
    target, guild = id_of(inner, "target_id"), id_of(data, "guild_id")
    owners = data.get("authorizing_integration_owners")
    return Invoked(
        number,
        Handle(us.application, token),
        kind,
        str(inner.get("name" if kind == COMMAND else "custom_id", "")),
        guild,
        channel,
        user,
        str(data.get("locale") or "en").partition("-")[0].lower(),
        roles=ids(member.get("roles")),
        permissions=str(member.get("permissions") or ""),
        options={str(one.get("name")): one.get("value") for one in parts(inner, "options")},
        target=target,
        text=_text(part(part(part(inner, "resolved"), "messages"), target), us) if target else "",
        direct=not guild and data.get("context", 1) == 1,
        installed=not isinstance(owners, Mapping) or "0" in owners,
        data=inner,
    )


def asked(found: Invoked) -> tuple[TaskKind, str] | None:
    """Return what is to be done with which text; None where it asks nothing."""
    match found.kind, found.name:
        case 2, "ask":
            return "ask", found.option("question").strip()
        case 2, "check":
            return "check", unformatted(found.option("statement")).strip()
        case 2, "Fact-check":
            return "check", unformatted(found.text).strip()
        case 5, "footnote:about":
            return "ask", _asked_about(found.data)
        case _:
            return None


def question(found: Invoked, task: TaskKind, text: str, asker: Asker, *, only_asker: bool) -> Question:
    """Return the question that it is: in a thread and a DM of their conversation, else one by itself."""
    channel = found.channel
    thread = channel.id if channel.is_thread else ""
    place = Place("discord", found.guild, channel.parent if thread else channel.id, thread)
    conversation = f"discord:{found.guild}/{channel.id}" if thread or found.direct else found.key
    conversation = found.key if only_asker and not found.direct else conversation
    handle = found.handle.text
    return Question(found.key, task, text, asker, place, conversation, found.at, only_asker=only_asker, handle=handle)


def about_modal(text: str, language: str) -> dict[str, Any]:
    """Return the modal in which somebody asks about a message."""
    fields = [
        _field(_QUESTION, translate("discord_about_question", language), style=1, most=300, required=True),
        _field(
            _MESSAGE, translate("discord_about_message", language), style=2, most=LONGEST, required=True, value=text
        ),
    ]
    return {"custom_id": ABOUT, "title": translate("discord_about", language)[:45], "components": fields}


def _asked_about(data: Json) -> str:
    values = dict(_values(data.get("components")))
    wanted, message = values.get(_QUESTION, "").strip(), values.get(_MESSAGE, "").strip()
    return f"{wanted}\n\n“{message}”" if message else wanted


def _values(components: object) -> Iterator[tuple[str, str]]:
    """Yield the fields of a modal, in labels or in rows."""
    for one in components if isinstance(components, list) else ():
        if not isinstance(one, Mapping):
            continue
        if isinstance(one.get("custom_id"), str) and isinstance(one.get("value"), str):
            yield one["custom_id"], one["value"]
        inner = one.get("component")
        yield from _values([inner] if isinstance(inner, Mapping) else one.get("components"))


def _field(name: str, label: str, *, style: int, most: int, required: bool, value: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"type": 4, "custom_id": name, "style": style, "max_length": most, "required": required}
    if value:
        made["value"] = _cut(value, most)
    return {"type": 18, "label": label[:45], "component": made}


def _cut(text: str, most: int) -> str:
    """Return as much of a text as fits, in UTF-16 units."""
    return text.encode("utf-16-le", "replace")[: most * 2].decode("utf-16-le", "ignore")


def _where(data: Json) -> Channel | None:
    """Return where something was invoked; by its id alone where Discord does not describe it."""
    guild = id_of(data, "guild_id")
    if found := channel_of(part(data, "channel"), guild):
        return found
    number = id_of(data, "channel_id")
    return Channel(number, 0 if guild else 1, guild) if number else None


def _text(message: Json, us: Us) -> str:
    names = {id_of(one, "id"): name_of(one) for one in parts(message, "mentions")}
    return said(words_of(message, us.user), us, names)
