"""Discord's components as HTML, in looks of our own; pure. Kinds that the bot does not make are refused."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from tools.pictures.discord.discord_markdown import markdown
from tools.pictures.markup import Json, Names, Undrawn, plain

ROW, BUTTON, TEXT, SEPARATOR, CONTAINER = 1, 2, 10, 14, 17
_STYLES: Mapping[int, str] = {1: "primary", 2: "secondary", 3: "success", 4: "danger"}


def drawn(components: Iterable[Json], names: Names = MappingProxyType({})) -> str:
    """Return components as HTML. Raises `Undrawn`."""
    return "".join(_drawn(one, names) for one in components)


def _drawn(one: Json, names: Names) -> str:
    if one["type"] not in _KINDS:
        raise Undrawn(f"a component of the type {one['type']}")
    return _KINDS[one["type"]](one, names)


def _container(one: Json, names: Names) -> str:
    colour = one.get("accent_color")
    edge = "" if colour is None else f' style="border-left-color:#{colour:06x}"'
    return f'<div class="container"{edge}>{drawn(one["components"], names)}</div>'


def _text(one: Json, names: Names) -> str:
    return f'<div class="text">{markdown(one["content"], names)}</div>'


def _row(one: Json, names: Names) -> str:
    return f'<div class="row">{drawn(one["components"], names)}</div>'


def _button(one: Json, _: Names) -> str:
    sign = plain(one["emoji"]["name"]) if one.get("emoji") else ""
    return f'<span class="button {_STYLES[one["style"]]}">{sign}{plain(one.get("label") or "")}</span>'


_KINDS: Mapping[int, Callable[[Json, Names], str]] = {
    CONTAINER: _container,
    TEXT: _text,
    ROW: _row,
    BUTTON: _button,
    SEPARATOR: lambda one, _: "<hr>" if one.get("divider", True) else '<div class="gap"></div>',
}
