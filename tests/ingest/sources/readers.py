"""Readers of the shape that LlamaIndex's have, each with a habit that some of them have."""

import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

asked: list[str] = []
"""What the readers were asked for, in order."""


@dataclass
class Document:
    """What LlamaIndex calls a document."""

    text: Any
    metadata: dict[str, Any] = field(default_factory=dict)
    id_: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def doc_id(self) -> str:
        """Return its identifier."""
        return self.id_


class _Base:
    def lazy_load_data(self, *_arguments: Any, **_named: Any) -> Any:
        """Be as LlamaIndex's own base is."""
        raise NotImplementedError("does not provide lazy_load_data method currently")


class Given(_Base):
    """Returns the documents that it was made with, and says so."""

    def __init__(self, documents: list[Any]) -> None:
        self._documents = documents

    def load_data(self, only: str = "") -> list[Any]:
        """Return them."""
        print("Loading ...")  # noqa: T201 - many do
        return [
            Document(**given) if isinstance(given, dict) else given for given in self._documents if only in str(given)
        ]


class Lazy(_Base):
    """Yields documents one by one, and fails after some."""

    def __init__(self, count: int, fails_after: int = 1_000, token: str = "") -> None:
        self._count, self._fails_after, self._token = count, fails_after, token

    def lazy_load_data(self) -> Iterator[Document]:
        """Yield them."""
        for number in range(self._count):
            asked.append(f"{number}")
            if number == self._fails_after:
                raise ConnectionError(f"https://x.org/?token={self._token} refused")
            yield Document(f"Text {number}.", {"title": f"Page {number}", "url": f"https://x.org/{number}"})

    def load_data(self) -> list[Document]:
        """Refuse: whoever can yield should not be asked for all."""
        raise AssertionError("it was asked for all at once")


class LateLazy(_Base):
    """Says that it is not lazy only when it is asked for the first document."""

    def lazy_load_data(self) -> Iterator[Document]:
        """Fail at the first."""
        yield from super().lazy_load_data()

    def load_data(self) -> list[Document]:
        """Return one."""
        return [Document("One.", id_="one")]


class Nothing:
    """Returns None."""

    def load_data(self) -> None:
        """Return nothing at all."""


class Exits:
    """Ends the program, as scripts do."""

    def load_data(self) -> None:
        """Exit."""
        sys.exit("no credentials")


class Unfit:
    """Cannot be made."""

    def __init__(self, api_key: str) -> None:
        raise ValueError(f"the key {api_key} is wrong")
