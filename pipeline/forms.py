"""What the reply of a model must look like: JSON where the server keeps a schema, else strict text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """One stage's reply in both formats; the readers raise `UnreadableReply` and say what is missing."""

    schema: Mapping[str, Any] | None
    """A strict JSON schema (an object at its top); None for replies that are plain text anyway."""
    from_json: Callable[[Any], T]
    """Reads what fits the schema."""
    from_text: Callable[[str], T]
    """Reads the text format that the template asks for where there is no schema."""


class Splitter(Protocol[T_co]):
    """Cuts a streamed reply into values as soon as each is certain."""

    def feed(self, piece: str) -> tuple[T_co, ...]:
        """Take the next stretch of the reply; return what is certain now and was not before."""
        ...

    def close(self) -> tuple[T_co, ...]:
        """Return what is left at the reply's end. It may be fed another reply after that.

        Raises:
            UnreadableReply: the reply is not in the format asked for. Only if no value was given before.
        """
        ...
