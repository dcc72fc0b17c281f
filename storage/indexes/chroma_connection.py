"""Connect to Chroma: embedded in a folder, or a server, whose version and token are checked first."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import uuid4

from storage.errors import StorageError, explain_folder_error, translate_index_errors

TokenScheme = Literal["x-chroma-token", "bearer"]

SPOKEN_VERSION = "1"  # the supported major version of the server
SERVER_SECONDS = 30.0  # longest wait for a response; otherwise, a server that hangs would block a thread forever


@dataclass(frozen=True, slots=True)
class ChromaServer:
    """A Chroma server or Chroma Cloud. If tenant or database is empty, the one that the token belongs to is used."""

    url: str
    tenant: str = ""
    database: str = ""
    token: str = ""
    scheme: TokenScheme = "x-chroma-token"
    ca_file: Path | None = None  # certificate authority of the server, unless it is a public one
    seconds: float = SERVER_SECONDS

    @property
    def headers(self) -> dict[str, str]:
        if not self.token:
            return {}
        return {"Authorization": f"Bearer {self.token}"} if self.scheme == "bearer" else {self.scheme: self.token}

    def hide_token(self, text: str) -> str:
        return text.replace(self.token, "…") if self.token else text


ChromaLocation = Path | ChromaServer  # the folder of an embedded Chroma, or a server


def connect_chroma(place: ChromaLocation) -> Any:
    """Open a client with telemetry off. Raises `HomeUnusable`, `IndexStale` or, for a server, `StorageError`."""
    with translate_chroma_errors(place):
        chromadb = _load_chromadb()
        settings = _make_settings().model_copy()  # the client writes into them
        if isinstance(place, ChromaServer):
            return _connect_server(place, settings)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise explain_folder_error(error, place) from error
        try:
            return chromadb.PersistentClient(str(place), settings=settings)
        except Exception:
            _drop_unstarted(str(place))
            raise


def _load_chromadb() -> Any:
    import chromadb  # takes half a second

    return chromadb


@cache
def _make_settings() -> Any:
    """Return Chroma's settings with telemetry off, cached: building them takes longer than opening a client."""
    return _load_chromadb().Settings(anonymized_telemetry=False)


def _drop_unstarted(folder: str) -> None:
    """Discard the client that Chroma caches for a folder that it failed to open; the next opening would use it."""
    from chromadb.api.shared_system_client import SharedSystemClient

    if folder not in SharedSystemClient._identifier_to_refcount:  # noqa: SLF001 - Chroma has no public way
        SharedSystemClient._identifier_to_system.pop(folder, None)  # noqa: SLF001


def _connect_server(place: ChromaServer, settings: Any) -> Any:
    chromadb = _load_chromadb()
    tls = _make_tls(place)
    tenant, database = _greet_server(place, tls)
    client = chromadb.HttpClient(
        host=place.url.rstrip("/"),  # the whole address, as a proxy may have the server beneath a path
        ssl=urlsplit(place.url).scheme == "https",
        headers=place.headers,
        settings=settings.model_copy(update={"chroma_server_ssl_verify": tls}),
        tenant=tenant,
        database=database,
    )
    for session in _sessions(client):
        session.timeout = place.seconds  # without this it waits forever, and Chroma has no setting for it
    return client


def close_chroma(client: Any) -> None:
    """Close a client, including its connections to a server, which Chroma itself would leave open."""
    sessions = list(_sessions(client))
    client.close()
    for session in sessions:
        session.close()


def _sessions(client: Any) -> Iterator[Any]:
    """Yield the HTTP sessions of a client, including its separate one for administration."""
    for one in (client, client._admin_client):  # noqa: SLF001
        if session := getattr(one._server, "_session", None):  # noqa: SLF001
            yield session


def _make_tls(place: ChromaServer) -> ssl.SSLContext | Literal[True]:
    if place.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(place.ca_file))
    except OSError as error:
        hint = "[chroma] ca_file names a file of certificates in PEM form."
        raise StorageError(f"{place.ca_file} cannot be read as certificates.", hint=hint) from error


def _greet_server(place: ChromaServer, tls: ssl.SSLContext | Literal[True]) -> tuple[str, str]:
    """Return the tenant and database to use. Raises `StorageError` unless the server is a Chroma of our version."""
    import httpx

    chromadb = _load_chromadb()
    with httpx.Client(headers=place.headers, verify=tls, timeout=place.seconds) as client:
        try:
            version = _get(client, place, "version")
            identity = _get(client, place, "auth/identity")
        except httpx.HTTPError as error:
            hint = "Check [chroma] url, that the server runs, and that it can be reached from here."
            raise StorageError(f"The Chroma server at {place.url} does not answer ({error}).", hint=hint) from error
    if version is None or str(version).partition(".")[0] != SPOKEN_VERSION:
        reason = f"has version {version}" if version else "does not answer like Chroma"
        hint = f"Run a Chroma server of version {SPOKEN_VERSION}, or correct [chroma] url."
        raise StorageError(f"The Chroma server at {place.url} {reason}; version {SPOKEN_VERSION} is needed.", hint=hint)
    known = identity if isinstance(identity, dict) else {}
    sole = [name for name in known.get("databases") or () if name != "*"]
    tenant = known.get("tenant") or chromadb.DEFAULT_TENANT
    return place.tenant or str(tenant), place.database or (
        str(sole[0]) if len(sole) == 1 else chromadb.DEFAULT_DATABASE
    )


def _get(client: Any, place: ChromaServer, path: str) -> Any:
    """Return the server's JSON response, or None if it is other text. Raises `StorageError` for a refused token."""
    reply = client.get(f"{place.url.rstrip('/')}/api/v2/{path}")
    if reply.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        hint = "Check [chroma] token, and scheme, which says how the token is sent."
        what = "refuses the token" if place.token else "requires a token"
        raise StorageError(f"The Chroma server at {place.url} {what}.", hint=hint)
    with suppress(ValueError):
        return reply.json() if reply.is_success else None
    return None


@contextmanager
def translate_chroma_errors(place: ChromaLocation) -> Iterator[None]:
    """Convert Chroma's errors within the block to a `StorageError` that says what to do."""
    import httpx
    from chromadb.errors import ChromaError

    if isinstance(place, Path):
        with translate_index_errors("the dense index", place, ChromaError, OSError, ValueError, RuntimeError):
            yield
        return
    try:
        yield
    except Exception as error:
        # For unknown replies, such as a proxy's, its client raises a bare `Exception`.
        if not isinstance(error, (ChromaError, ValueError, httpx.HTTPError)) and type(error) is not Exception:
            raise
        cause = place.hide_token(" ".join(str(error).split())[:200])
        hint = "Check [chroma] url, and that the server runs."
        raise StorageError(f"The Chroma server at {place.url} failed ({cause}).", hint=hint) from error


_PROBE = [1.0, 0.0, 0.0]


def probe_chroma(place: ChromaServer) -> None:
    """Write into a temporary collection, search it, and remove it. Blocks.

    Raises a `StorageError` that names the failed step.
    """
    with ExitStack() as stack:
        client = connect_chroma(place)
        stack.callback(close_chroma, client)
        name = f"probe-{uuid4().hex}"
        with _doing(place, "cannot be written"):
            collection = client.create_collection(name, embedding_function=None)
        try:
            with _doing(place, "cannot be written"):
                collection.add(ids=["a"], embeddings=[_PROBE])
            with _doing(place, "cannot be searched"):
                nearest = collection.query(query_embeddings=[_PROBE], n_results=1)["ids"]
            if nearest != [["a"]]:
                raise StorageError(f"The Chroma server at {place.url} does not find the written vectors.")
        finally:
            with _doing(place, "does not allow removals"):
                client.delete_collection(name)


@contextmanager
def _doing(place: ChromaServer, failing: str) -> Iterator[None]:
    try:
        with translate_chroma_errors(place):
            yield
    except StorageError as error:
        raise StorageError(f"The Chroma server at {place.url} {failing}: {error}", hint=error.hint) from error
