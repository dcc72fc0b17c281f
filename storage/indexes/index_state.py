"""Check whether the indexes of a home fit its manifest, before anything is opened for work."""

from collections.abc import Sequence
from contextlib import closing
from math import inf
from pathlib import Path

from storage.errors import DatabaseUnusable, StorageError
from storage.home.home_folder import holds_passages
from storage.indexes.chroma_connection import ChromaLocation
from storage.indexes.dense import DenseIndex
from storage.indexes.embedding import Embedder, open_model
from storage.indexes.lexical import CHECKED_BYTES, LexicalIndex
from storage.manifest import Manifest
from storage.search.corpus_embedders import CorpusEmbedders, choose_default, find_language, sample_passages
from storage.types import CorpusInfo, DenseMode

PROBE_WORDS = 8  # of a passage of each corpus, to test whether a search works


async def find_probe(manifest: Manifest) -> str:
    """Return words to search for, taken from the first passage of each corpus; empty if there are no passages."""
    firsts = [await manifest.listed(corpus.name, limit=1) for corpus in await manifest.catalogue()]
    texts = (passage.text for versions in firsts for version in versions for passage in version.passages[:1])
    return " ".join(word for text in texts for word in text.split()[:PROBE_WORDS])


async def find_foreign(manifest: Manifest) -> tuple[str, ...]:
    """Return the corpora that are mostly in another language than English."""
    names = [corpus.name for corpus in await manifest.catalogue()]
    languages = [find_language(await sample_passages(manifest, name)) for name in names]
    return tuple(name for name, language in zip(names, languages, strict=True) if language not in {"", "en"})


def find_stale_indexes(
    home: Path, chroma: ChromaLocation, embedder: Embedder, corpora: Sequence[CorpusInfo], probe: str
) -> tuple[str, ...]:
    """Return the reasons why the indexes of a home do not fit its manifest; empty if they fit. Blocks.

    Only the home's owner may call this. Raises `IndexStale` if a search for `probe` fails.
    """
    folders = [home / "lexical", *([chroma] if isinstance(chroma, Path) else [])]
    if missing := [folder for folder in folders if not folder.exists()]:
        return (
            tuple(f"{folder} is missing." for folder in missing) if any(corpus.passages for corpus in corpora) else ()
        )
    with closing(DenseIndex(chroma, embedder=embedder.name)) as dense, closing(LexicalIndex(folders[0])) as lexical:
        if not (reasons := list_stale_reasons(dense, lexical, corpora, most=inf)) and probe:
            filled = [corpus.name for corpus in corpora if corpus.passages]
            lexical.search(probe, filled, 1)
            embedders = CorpusEmbedders(dense, embedder, choose_default, open_model)
            for name in [corpus.name for corpus in corpora if corpus.passages and corpus.dense is DenseMode.EAGER]:
                of = embedders.find(name)
                dense.search(name, embedders.embed_question(of, probe), 1, of.name)
        return reasons


_LOST_HINT = (
    "Nothing was changed. Restore it from a backup; or, to start again, move the folders chroma and lexical away and"
    " ingest again."
)


def refuse_lost_database(home: Path, chroma: ChromaLocation) -> None:
    """Raise `DatabaseUnusable` if SQLite's file is missing or empty, but there are indexes. Blocks."""
    file = home / "footnote.db"
    if holds_passages(file):
        return
    try:
        count = _count_indexed(home, chroma)
    except StorageError:
        count = 1  # an unused index cannot be damaged
    if count:
        raise DatabaseUnusable(f"{file} is missing or empty, but the indexes next to it are not.", hint=_LOST_HINT)


def _count_indexed(home: Path, chroma: ChromaLocation) -> int:
    folder, count = home / "lexical", 0
    if folder.exists():
        with closing(LexicalIndex(folder)) as lexical:
            count = lexical.count()
    if not count and isinstance(chroma, Path) and chroma.exists():
        with closing(DenseIndex(chroma, embedder="")) as dense:
            count = dense.total()
    return count


def list_stale_reasons(
    dense: DenseIndex, lexical: LexicalIndex, corpora: Sequence[CorpusInfo], *, most: float = CHECKED_BYTES
) -> tuple[str, ...]:
    expected_counts = {corpus.name: corpus.passages if corpus.dense is DenseMode.EAGER else 0 for corpus in corpora}
    embedded = [corpus.name for corpus in corpora if corpus.dense is not DenseMode.OFF]
    reasons = [dense.stale(name, expected_counts[name]) for name in embedded]
    expected = sum(corpus.passages for corpus in corpora)
    return tuple(filter(None, (*reasons, lexical.stale(expected, most=most))))
