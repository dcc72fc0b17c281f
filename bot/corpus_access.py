"""Apply the rules of `bot.access` to the settings and the manifest: admins, visible corpora, forgotten documents."""

from collections.abc import Collection

from bot.access import Asker, select_readable
from bot.settings.platform_registry import load_platforms
from bot.settings.tables.settings_tables import Settings
from storage.manifest import Manifest
from storage.types import Corpus, DocumentId


def is_admin(settings: Settings, by: Asker) -> bool:
    """Return whether the settings of any platform list this person as an admin."""
    return any(by.user_id in entry.read(settings).admins for entry in load_platforms().values())


async def list_corpora(settings: Settings, manifest: Manifest) -> tuple[Corpus, ...]:
    """Return the existing corpora, the search engine's included. Raises `StorageError`."""
    web = settings.search_engine.corpus
    return (*await manifest.catalogue(), *((Corpus(web, None, reference=True),) if web else ()))


async def find_visible_corpora(settings: Settings, manifest: Manifest, asker: Asker) -> tuple[str, ...]:
    """Return the existing corpora that this asker may read here. Raises `StorageError`."""
    readers = settings.visible_to
    corpora = await list_corpora(settings, manifest)
    return select_readable({corpus.name: readers.get(corpus.name, ()) for corpus in corpora}, asker)


async def find_forgotten_documents(manifest: Manifest, documents: Collection[DocumentId]) -> frozenset[DocumentId]:
    """Return which of the documents were forgotten. Raises `StorageError`.

    A document without a key counts as forgotten if its corpus has any: it could be one of them.
    """
    gone = {corpus: await manifest.forgotten(corpus) for corpus in sorted({corpus for corpus, _ in documents})}
    return frozenset((corpus, key) for corpus, key in documents if gone[corpus] and key in {"", *gone[corpus]})
