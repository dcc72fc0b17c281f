"""Discord's components of messages and modals, as checks: those that this project uses. Others are unknown."""

from collections.abc import Iterator
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.shapes import (
    BOOL,
    Check,
    choice,
    fields,
    kind,
    nullable,
    several,
    shape,
    string,
    typed,
    units,
    words,
    wrong,
)

ROW, BUTTON, SELECT, INPUT, TEXT, CONTAINER, LABEL = 1, 2, 3, 4, 10, 17, 18
_ID: dict[str, Check] = {"id": kind(int)}
_CUSTOM: dict[str, Check] = {"custom_id": words(limits.CUSTOM_ID)}


def _shape(kind: int, needed: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    return shape(kind, needed, {**_ID, **(optional or {})})


_BUTTON = _shape(BUTTON, {"style": choice(1, 2, 3, 4), "label": words(limits.LABEL), **_CUSTOM}, {"disabled": BOOL})
_ROW = _shape(ROW, {"components": several(typed({BUTTON: _BUTTON}), limits.ROW_BUTTONS, 1)})
_TEXT = _shape(TEXT, {"content": words(limits.COMPONENTS_TEXT)})
_CONTAINER = _shape(
    CONTAINER,
    {"components": several(typed({ROW: _ROW, TEXT: _TEXT}), limits.COMPONENTS, 1)},
)
_TEXT_INPUT = _shape(
    INPUT,
    {**_CUSTOM, "style": choice(1, 2)},
    {
        "max_length": kind(int, 1, limits.INPUT),
        "required": BOOL,
        "value": nullable(string(limits.INPUT, 0)),
    },
)
_OPTIONS = several(fields({"label": words(limits.OPTION), "value": words(limits.OPTION)}), limits.OPTIONS, 1)
_SELECT = _shape(SELECT, {**_CUSTOM, "options": _OPTIONS}, {"min_values": kind(int, 0, 25), "required": BOOL})
_LABEL = _shape(
    LABEL,
    {"label": words(limits.INPUT_LABEL), "component": typed({INPUT: _TEXT_INPUT, SELECT: _SELECT})},
)
_LEGACY = several(typed({ROW: _ROW}), limits.LEGACY_ROWS)
_NEW = several(typed({ROW: _ROW, TEXT: _TEXT, CONTAINER: _CONTAINER}), limits.COMPONENTS)
_MODAL = fields(
    {
        "title": words(limits.MODAL_TITLE),
        **_CUSTOM,
        "components": several(typed({LABEL: _LABEL, TEXT: _TEXT}), limits.MODAL_ROWS, 1),
    }
)


def nested(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every component within, with its path."""
    for name, item in enumerate(value) if isinstance(value, list) else ():
        if not isinstance(item, dict):
            continue
        here = f"{path}/{name}"
        yield here, item
        yield from nested(item.get("components"), f"{here}/components")
        if isinstance(item.get("component"), dict):
            yield f"{here}/component", item["component"]


def texts(components: Any) -> Iterator[str]:
    """Yield the texts that Discord counts."""
    for _, one in nested(components):
        if one.get("type") == TEXT and isinstance(one.get("content"), str):
            yield one["content"]


def message(components: Any, where: str, *, new: bool) -> Iterator[str]:
    """Check a message's components. `new`: as `IS_COMPONENTS_V2` has it."""
    found = list(nested(components, where))
    if new and len(found) > limits.COMPONENTS:
        yield wrong(where, f"no more than {limits.COMPONENTS} components allowed in all")
    if sum(map(units, texts(components))) > limits.COMPONENTS_TEXT:
        yield wrong(where, f"all text must be less than {limits.COMPONENTS_TEXT + 1} characters")
    yield from (_NEW if new else _LEGACY)(components, where)
    yield from _unique(found)


def modal(value: Any) -> Iterator[str]:
    yield from _MODAL(value, "/data")
    if isinstance(value, dict):
        yield from _unique(list(nested(value.get("components"), "/data/components")))


def _unique(found: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    for name in ("custom_id", "id"):
        seen = set[Any]()
        for path, one in found:
            value = one.get(name)
            if value and value in seen:
                yield wrong(f"{path}/{name}", "already exists")
            seen.add(value)


def numbered(components: list[dict[str, Any]]) -> None:
    """Give every component that has none an id, as Discord does."""
    found = [one for _, one in nested(components)]
    taken = {one["id"] for one in found if one.get("id")}
    free = (number for number in range(1, 10**6) if number not in taken)
    for one in found:
        one["id"] = one.get("id") or next(free)
