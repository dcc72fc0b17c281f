"""Readers with LlamaIndex's interface, each with a peculiarity of some real ones."""

import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

asked: list[str] = []  # documents requested from readers, in order


@dataclass
class Document:
    """A document as in LlamaIndex."""

    text: Any
    metadata: dict[str, Any] = field(default_factory=dict)
    id_: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def doc_id(self) -> str:
        return self.id_


class _Base:
    def lazy_load_data(self, *_arguments: Any, **_named: Any) -> Any:
        raise NotImplementedError("does not provide lazy_load_data method currently")


class Given(_Base):
    """Returns the documents that it was created with, and prints."""

    def __init__(self, documents: list[Any]) -> None:
        self._documents = documents

    def load_data(self, only: str = "") -> list[Any]:
        print("Loading ...")  # noqa: T201 - many do
        return [
            Document(**given) if isinstance(given, dict) else given for given in self._documents if only in str(given)
        ]


class Lazy(_Base):
    """Yields documents, and fails after some."""

    def __init__(self, count: int, fails_after: int = 1_000, token: str = "") -> None:
        self._count, self._fails_after, self._token = count, fails_after, token

    def lazy_load_data(self) -> Iterator[Document]:
        for number in range(self._count):
            asked.append(f"{number}")
            if number == self._fails_after:
                raise ConnectionError(f"https://x.org/?token={self._token} refused")
            yield Document(f"Text {number}.", {"title": f"Page {number}", "url": f"https://x.org/{number}"})

    def load_data(self) -> list[Document]:
        raise AssertionError("it was asked for all at once")


class LateLazy(_Base):
    """Raises `NotImplementedError` only at the first document."""

    def lazy_load_data(self) -> Iterator[Document]:
        yield from super().lazy_load_data()

    def load_data(self) -> list[Document]:
        return [Document("One.", id_="one")]


class Nothing:
    def load_data(self) -> None:
        """Return nothing at all."""


class Exits:
    """Exits the program."""

    def load_data(self) -> None:
        sys.exit("no credentials")


class Unfit:
    """Cannot be created."""

    def __init__(self, api_key: str) -> None:
        raise ValueError(f"the key {api_key} is wrong")
