"""Locate the vectors of a home: in its own folder or on a Chroma server."""

from bot.settings.tables.settings_tables import Settings
from storage.errors import StorageError
from storage.indexes.chroma_connection import ChromaLocation, ChromaServer


def locate_chroma(settings: Settings) -> ChromaLocation:
    """Return the configured Chroma server, or the folder in the home.

    Raises `StorageError` for a folder next to a shared database: no folder would hold all vectors.
    """
    chroma = settings.chroma
    if not chroma.url and settings.database:
        hint = "Name a Chroma server for all of them in [chroma] url (`chroma run` starts one), or empty `database`."
        raise StorageError("A PostgreSQL database is shared by homes, but the vectors would be in this one.", hint=hint)
    if not chroma.url:
        return settings.home / "chroma"
    token = chroma.token.get_secret_value()
    return ChromaServer(chroma.url, chroma.tenant, chroma.database, token, chroma.scheme, chroma.ca_file)
