"""Pure: which options and variables are secret, and text without them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SECRET_WORDS = frozenset({"authorization", "credentials", "headers", "key", "password", "secret", "token"})
SHORTEST = 6  # what is shorter is no key, and hiding it would tear words apart
HIDDEN = "[hidden]"


def is_secret(name: str) -> bool:
    """Whether an option or variable of this name belongs to who asks, and not to what is asked."""
    return not SECRET_WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def secrets_of(options: Mapping[str, Any], environment: Mapping[str, str]) -> frozenset[str]:
    """The secret values among `options` and in `environment`, where Chroma's functions look for theirs."""
    given = {name: value for name, value in options.items() if is_secret(name) and not name.endswith("_env_var")}
    around = {name: value for name, value in environment.items() if is_secret(name)}
    return frozenset(value for value in _strings([given, around]) if len(value) >= SHORTEST)


def hidden(text: str, secrets: Iterable[str]) -> str:
    """`text` with `[hidden]` in place of each secret, of user and password in addresses, and of keys half shown."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = re.sub(r"(?<=://)[^/@\s]+@", f"{HIDDEN}@", text)
    return re.sub(r"\bsk-[\w*-]{6,}", HIDDEN, text)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
