"""How many tokens a simulated server counts: four characters each, as English has with the vocabularies of today."""

from collections.abc import Iterable, Mapping
from typing import Any

CHARACTERS_A_TOKEN = 4


def flat(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the messages of a prompt as the one text that a model reads."""
    return "".join(f"<{message['role']}>\n{message['content']}\n" for message in messages)


def tokens(text: str) -> int:
    """Return how many tokens a text has; at least one."""
    return max(1, len(text) // CHARACTERS_A_TOKEN)
