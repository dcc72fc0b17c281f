"""Discord's components of messages and modals, as checks: those that this project uses. Others are unknown."""

from collections.abc import Iterator
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.refusing import Wrong
from tests.platforms.discord.shapes import (
    Check,
    Path,
    boolean,
    choice,
    fields,
    integer,
    nullable,
    required,
    several,
    snowflake,
    string,
    typed,
    units,
    url,
)

ROW, BUTTON, INPUT, TEXT, CONTAINER, LABEL = 1, 2, 4, 10, 17, 18
_ID: dict[str, Check] = {"id": integer()}
_CUSTOM: dict[str, Check] = {"custom_id": string(limits.CUSTOM_ID, 1)}
_EMOJI = fields({}, {"id": nullable(snowflake), "name": string(100), "animated": boolean})


def _shape(kind: int, needed: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    return fields({"type": choice(kind), **needed}, {**_ID, **(optional or {})})


_BUTTON = _shape(
    BUTTON,
    {"style": choice(1, 2, 3, 4, 5)},
    {**_CUSTOM, "label": nullable(string(limits.LABEL)), "url": url, "emoji": nullable(_EMOJI), "disabled": boolean},
)


def _button(value: Any, path: Path) -> Iterator[Wrong]:
    """Check a button: it links or is pressed, and shows something."""
    yield from _BUTTON(value, path)
    if not isinstance(value, dict):
        return
    needs, not_so = ("url", "custom_id") if value.get("style") == 5 else ("custom_id", "url")
    if needs not in value:
        yield required((*path, needs))
    if not_so in value:
        yield Wrong(
            (*path, not_so),
            "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
            "A custom id and url cannot both be specified",
        )
    if not value.get("label") and not value.get("emoji"):
        yield Wrong(path, "BUTTON_COMPONENT_INVALID", "A button must have a label or emoji")


_ROW = _shape(ROW, {"components": several(typed({BUTTON: _button}), limits.ROW_BUTTONS, 1)})
_TEXT = _shape(TEXT, {"content": string(limits.COMPONENTS_TEXT, 1)})
_CONTAINER = _shape(
    CONTAINER,
    {"components": several(typed({ROW: _ROW, TEXT: _TEXT}), limits.COMPONENTS, 1)},
    {"accent_color": nullable(integer(0, 0xFFFFFF)), "spoiler": boolean},
)
_TEXT_INPUT = _shape(
    INPUT,
    {**_CUSTOM, "style": choice(1, 2)},
    {
        "min_length": integer(0, limits.INPUT),
        "max_length": integer(1, limits.INPUT),
        "required": boolean,
        "value": nullable(string(limits.INPUT)),
        "placeholder": nullable(string(100)),
    },
)
_LABEL = _shape(
    LABEL,
    {"label": string(limits.INPUT_LABEL, 1), "component": typed({INPUT: _TEXT_INPUT})},
    {"description": nullable(string(100))},
)
_LEGACY = several(typed({ROW: _ROW}), limits.LEGACY_ROWS)
_NEW = several(typed({ROW: _ROW, TEXT: _TEXT, CONTAINER: _CONTAINER}), limits.COMPONENTS)
_MODAL = fields(
    {
        "title": string(limits.MODAL_TITLE, 1),
        **_CUSTOM,
        "components": several(typed({LABEL: _LABEL, TEXT: _TEXT}), limits.MODAL_ROWS, 1),
    }
)


def nested(value: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every component within, with its path."""
    for name, item in enumerate(value) if isinstance(value, list) else ():
        if not isinstance(item, dict):
            continue
        here = (*path, str(name))
        yield here, item
        yield from nested(item.get("components"), (*here, "components"))
        if isinstance(item.get("component"), dict):
            yield (*here, "component"), item["component"]


def texts(components: Any) -> Iterator[str]:
    """Yield the texts that Discord counts."""
    for _, one in nested(components):
        if one.get("type") == TEXT and isinstance(one.get("content"), str):
            yield one["content"]


def message(components: Any, *, new: bool) -> Iterator[Wrong]:
    """Check a message's components. `new`: as `IS_COMPONENTS_V2` has it."""
    where = ("components",)
    found = list(nested(components, where))
    if new and len(found) > limits.COMPONENTS:
        yield Wrong(
            where,
            "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED",
            f"Must be between 1 and {limits.COMPONENTS} in length. {len(found)} components in all.",
        )
    if sum(map(units, texts(components))) > limits.COMPONENTS_TEXT:
        yield Wrong(
            where,
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
            f"Components displayable text size exceeds maximum size of {limits.COMPONENTS_TEXT}",
        )
    yield from (_NEW if new else _LEGACY)(components, where)
    yield from _unique(found)


def modal(value: Any) -> Iterator[Wrong]:
    yield from _MODAL(value, ("data",))
    if isinstance(value, dict):
        yield from _unique(list(nested(value.get("components"), ("data", "components"))))


def _unique(found: list[tuple[Path, dict[str, Any]]]) -> Iterator[Wrong]:
    for name, code in (("custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED"), ("id", "COMPONENT_ID_DUPLICATED")):
        seen = set[Any]()
        for path, one in found:
            value = one.get(name)
            if value and value in seen:
                yield Wrong((*path, name), code, f"Component {name.replace('_', ' ')} cannot be duplicated")
            seen.add(value)


def numbered(components: list[dict[str, Any]]) -> None:
    """Give every component that has none an id, as Discord does."""
    found = [one for _, one in nested(components)]
    taken = {one["id"] for one in found if one.get("id")}
    free = (number for number in range(1, 10**6) if number not in taken)
    for one in found:
        one["id"] = one.get("id") or next(free)
