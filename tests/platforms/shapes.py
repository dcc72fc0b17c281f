"""Checks of JSON that are combined from small ones; each yields the objections that a platform would have.

Lengths are counted as UTF-16 does, which is never less than a platform's count. Unknown fields are refused.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Check = Callable[[Any, str], Iterator[str]]
"""Receives a value and its path, and yields objections, in Slack's words."""


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "replace")) // 2


def wrong(where: str, what: str) -> str:
    return f"[ERROR] {what} [json-pointer:{where}]"


def string(most: int = 10**9, least: int = 1) -> Check:
    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield wrong(where, "must be a string")
        elif units(value) > most:
            yield wrong(where, f"must be less than {most + 1} characters")
        elif units(value) < least:
            yield wrong(where, f"must be more than {least - 1} characters")

    return check


def words(most: int) -> Check:
    """Return a check of a text that is not blank."""

    def check(value: Any, where: str) -> Iterator[str]:
        yield from string(most)(value.strip() and value if isinstance(value, str) else value, where)

    return check


def url(most: int = 3_000) -> Check:
    def check(value: Any, where: str) -> Iterator[str]:
        found = list(string(most)(value, where))
        if not found and (not value.startswith(("http://", "https://")) or any(char.isspace() for char in value)):
            found.append(wrong(where, "must be a valid URL"))
        yield from found

    return check


def choice(*values: Any) -> Check:
    def check(value: Any, where: str) -> Iterator[str]:
        if value not in values:
            yield wrong(where, f"must be one of: {', '.join(map(str, values))}")

    return check


def kind(of: type, least: float = 0, most: float = 2**31 - 1) -> Check:
    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, of) or (of is int and isinstance(value, bool)):
            yield wrong(where, f"must be a {of.__name__}")
        elif of is int and not least <= value <= most:
            yield wrong(where, f"must be between {least} and {most}")

    return check


BOOL = kind(bool)


def anything(_: Any, __: str) -> Iterator[str]:
    yield from ()


def nullable(check: Check) -> Check:
    return lambda value, where: iter(()) if value is None else check(value, where)


def several(each: Check, most: int = 10**9, least: int = 0) -> Check:
    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield wrong(where, "must be an array")
            return
        if len(value) > most:
            yield wrong(where, f"no more than {most} items allowed")
        if len(value) < least:
            yield wrong(where, f"no fewer than {least} items allowed")
        for number, item in enumerate(value):
            yield from each(item, f"{where}/{number}")

    return check


def fields(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return a check of an object's fields."""
    known = {**required, **(optional or {})}

    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield wrong(where, "must be an object")
            return
        for name in required:
            if name not in value:
                yield wrong(where, f"missing required field: {name}")
        for name, item in value.items():
            if name in known:
                yield from known[name](item, f"{where}/{name}")
            else:
                yield wrong(where, f"invalid additional property: {name}")

    return check


def typed(kinds: Mapping[Any, Check]) -> Check:
    def check(value: Any, where: str) -> Iterator[str]:
        name = value.get("type") if isinstance(value, dict) else None
        if not isinstance(name, str | int):
            yield wrong(where, "missing required field: type")
        elif name not in kinds:
            yield wrong(f"{where}/type", f"unsupported type: {name}")
        else:
            yield from kinds[name](value, where)

    return check


def shape(name: Any, required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    return fields({"type": choice(name), **required}, optional)
