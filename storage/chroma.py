"""Chroma's clients: embedded in a folder or on a server, and what its errors mean; `storage.dense` uses them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from storage.errors import StorageError
from storage.faults import folder_fault, told


@dataclass(frozen=True, slots=True)
class ChromaServer:
    """Where a Chroma server, or Chroma Cloud, is to be found."""

    url: str
    tenant: str = ""
    database: str = ""
    token: str = ""


Place = Path | ChromaServer
"""The folder of an embedded Chroma, or a server."""


def connect(place: Place) -> Any:
    """Return a client, with telemetry off.

    Raises:
        HomeUnusable: the folder cannot be written, or its disk is full.
        IndexStale: the folder holds something that Chroma cannot read.
        StorageError: the server does not answer.
    """
    with failing(place):
        return _on_server(place) if isinstance(place, ChromaServer) else _embedded(place)


@contextmanager
def failing(place: Place) -> Iterator[None]:
    """Turn what Chroma raises within the block into a `StorageError` that says what to do."""
    import httpx
    from chromadb.errors import ChromaError

    if isinstance(place, Path):
        with told("the dense index", place, ChromaError, OSError, ValueError, RuntimeError):
            yield
        return
    try:
        yield
    except (ChromaError, ValueError, httpx.HTTPError) as error:
        cause = " ".join(str(error).split())[:200].replace(place.token or "\0", "…")
        hint = "Check [chroma] url, and that the server runs."
        raise StorageError(f"The Chroma server at {place.url} failed ({cause}).", hint=hint) from error


def _embedded(folder: Path) -> Any:
    import chromadb

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise folder_fault(error, folder) from error
    return chromadb.PersistentClient(str(folder), settings=_settings())


def _on_server(server: ChromaServer) -> Any:
    import chromadb

    parts = urlsplit(server.url)
    named: Mapping[str, str] = {"tenant": server.tenant, "database": server.database}
    return chromadb.HttpClient(
        host=parts.hostname or "localhost",
        port=parts.port or (443 if parts.scheme == "https" else 8000),
        ssl=parts.scheme == "https",
        headers={"x-chroma-token": server.token} if server.token else None,
        settings=_settings(),
        **{key: value for key, value in named.items() if value},
    )


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)
