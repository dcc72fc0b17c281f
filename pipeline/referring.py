"""The facts of a call as its record keeps them: passages by their ids, conversations by their length. Pure.

Their texts are on record once, with the turn and its citations; a step need not repeat them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from pipeline.types import Conversation
from storage.types import Evidence, Hit, Passage


def referred(value: object) -> Any:
    """Return a fact as JSON could hold it, with references in the place of what is on record elsewhere.

    A passage becomes its id, a sentence of a passage `id:start-end`, a conversation the number of its turns.
    """
    if isinstance(value, Hit):
        return value.passage.id
    if isinstance(value, Passage):
        return value.id
    if isinstance(value, Evidence):
        return f"{value.passage.id}:{value.span[0]}-{value.span[1]}"
    if isinstance(value, Conversation):
        return len(value.turns)
    return _by_parts(value)


def _by_parts(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: referred(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): referred(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [referred(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
