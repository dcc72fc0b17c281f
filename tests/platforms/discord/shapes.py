"""Checks of JSON that are combined from small ones; each yields the problems that Discord would report.

Lengths are counted as UTF-16 does, which is never less than Discord's count. Fields that are not known are refused,
where Discord mostly passes over them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.platforms.discord.refusing import Wrong

Path = tuple[str, ...]
Check = Callable[[Any, Path], Iterator[Wrong]]
"""Receives a value and its path, and yields problems."""


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def required(path: Path) -> Wrong:
    return Wrong(path, "BASE_TYPE_REQUIRED", "This field is required")


def length(path: Path, least: int, most: int) -> Wrong:
    if least:
        return Wrong(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
    return Wrong(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")


def string(most: int, least: int = 0) -> Check:
    def check(value: Any, path: Path) -> Iterator[Wrong]:
        if not isinstance(value, str):
            yield Wrong(path, "BASE_TYPE_STRING", "Must be a string.")
        elif least and not value.strip():
            yield required(path)
        elif not least <= units(value) <= most:
            yield length(path, least, most)

    return check


def integer(least: int = 0, most: int = 2**31 - 1) -> Check:
    def check(value: Any, path: Path) -> Iterator[Wrong]:
        if not isinstance(value, int) or isinstance(value, bool):
            yield Wrong(path, "NUMBER_TYPE_COERCE", f'Value "{value}" is not int.')
        elif not least <= value <= most:
            yield Wrong(path, "NUMBER_TYPE_MAX", f"int value should be between {least} and {most}.")

    return check


def boolean(value: Any, path: Path) -> Iterator[Wrong]:
    if not isinstance(value, bool):
        yield Wrong(path, "BOOLEAN_TYPE_CONVERT", "Must be either true or false.")


def anything(_: Any, __: Path) -> Iterator[Wrong]:
    yield from ()


def choice(*values: Any) -> Check:
    def check(value: Any, path: Path) -> Iterator[Wrong]:
        if value not in values:
            yield Wrong(path, "BASE_TYPE_CHOICES", f"Value must be one of {{{', '.join(map(repr, values))}}}.")

    return check


def snowflake(value: Any, path: Path) -> Iterator[Wrong]:
    if isinstance(value, bool) or not str(value).isdecimal():
        yield Wrong(path, "NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.')


def url(value: Any, path: Path) -> Iterator[Wrong]:
    if not isinstance(value, str) or not value.startswith(("http://", "https://", "discord://")) or " " in value:
        yield Wrong(path, "URL_TYPE_INVALID_URL", "Not a well formed URL.")
    elif units(value) > 512:
        yield length(path, 0, 512)


def several(each: Check, most: int, least: int = 0) -> Check:
    def check(value: Any, path: Path) -> Iterator[Wrong]:
        if not isinstance(value, list):
            yield Wrong(path, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
            return
        if not least <= len(value) <= most:
            yield length(path, least, most)
        for number, item in enumerate(value):
            yield from each(item, (*path, str(number)))

    return check


def nullable(check: Check) -> Check:
    return lambda value, path: iter(()) if value is None else check(value, path)


def fields(needed: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return what checks an object's fields: no other may be there."""
    known = {**needed, **(optional or {})}

    def check(value: Any, path: Path) -> Iterator[Wrong]:
        if not isinstance(value, dict):
            yield Wrong(path, "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType")
            return
        yield from (required((*path, name)) for name in needed if name not in value)
        for name, item in value.items():
            if name in known:
                yield from known[name](item, (*path, name))
            else:
                yield Wrong((*path, name), "BASE_TYPE_UNKNOWN_FIELD", "This field is not known.")

    return check


def typed(kinds: Mapping[int, Check]) -> Check:
    def check(value: Any, path: Path) -> Iterator[Wrong]:
        kind = value.get("type") if isinstance(value, dict) else None
        if kind is None:
            yield required((*path, "type"))
        elif kind not in kinds:
            known = ", ".join(map(str, kinds))
            yield Wrong((*path, "type"), "UNION_TYPE_CHOICES", f'Value of field "type" must be one of ({known}).')
        else:
            yield from kinds[kind](value, path)

    return check
