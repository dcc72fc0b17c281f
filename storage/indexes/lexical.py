"""The lexical index: BM25 over terms, in tantivy, one index for all corpora.

Terms are made by `storage.language.words`, for passages and for questions alike, so tantivy itself only splits at
spaces. All calls block.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from storage.errors import REINDEX_HINT, IndexStale, explain_folder_error, translate_index_errors
from storage.indexes.embedding import INDEX_SCHEMA, aliases_text, indexed_text
from storage.language.detection import detect_language
from storage.language.words import content_words, terms, words
from storage.types import Document, Passage

ANALYZER = "terms"
HEAP_BYTES = 64_000_000
CHECKED_BYTES = 32_000_000  # of its files, whenever it is opened to be searched: some hundredths of a second
_FOOTER_END = 8  # bytes: the length of the footer before them, and a number that every footer has


class LexicalIndex:
    """A tantivy index in a folder of its own. Close it: merges are then waited for."""

    def __init__(self, folder: Path) -> None:
        """Open the index in `folder`, or make an empty one. Raises `IndexStale` for one that cannot be used."""
        self._folder = folder
        self._writer: Any = None
        self._index = _open_index(folder) if (folder / "meta.json").exists() else _create_index(folder)
        self._languages = set(_read_stamp(folder)["languages"])

    def write(self, rows: Sequence[tuple[Document, Passage]]) -> None:
        """Write passages with their documents, replacing those with the same ids, and commit."""
        import tantivy

        self._remember({document.language for document, _ in rows})
        with self._committing() as writer:
            for document, passage in rows:
                writer.delete_documents_by_term("id", passage.id)
                text = "\n".join((indexed_text(document, passage), aliases_text(document, passage)))
                body = " ".join(terms(text, document.language))
                names = {"id": passage.id, "corpus": passage.corpus, "hash": passage.hash}
                writer.add_document(tantivy.Document(body=body, **names))

    def delete(self, ids: Iterable[str]) -> None:
        """Remove passages by id, and commit. Unknown ids are no error."""
        with self._committing() as writer:
            for passage_id in ids:
                writer.delete_documents_by_term("id", passage_id)

    def search(self, text: str, corpora: Sequence[str], k: int) -> dict[str, float]:
        """Return the BM25 of the `k` best passages of `corpora` by id; those that share no term are left out."""
        groups = self._expand(text)
        if not groups or not corpora:
            return {}
        with self._translating_errors():
            searcher = self._index.searcher()
            found = searcher.search(self._query(groups, corpora), limit=k, count=False)
            return {str(searcher.doc(address)["id"][0]): float(score) for score, address in found.hits}

    def contents(self) -> dict[str, str]:
        """Return the hash of every passage in the index by id."""
        import tantivy

        with self._translating_errors():
            searcher = self._index.searcher()
            if not searcher.num_docs:
                return {}
            found = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False)
            documents = (searcher.doc(address) for _, address in found.hits)
            return {str(document["id"][0]): str(document["hash"][0]) for document in documents}

    def count(self) -> int:
        with self._translating_errors():
            return int(self._index.searcher().num_docs)

    def stale(self, expected: int, *, most: float = CHECKED_BYTES) -> str:
        """Return why the index does not serve `expected` passages; empty when it does. Reads `most` bytes at most."""
        if (count := self.count()) < expected:
            return f"The lexical index holds {count:,} of {expected:,} passages."
        damaged = _find_damaged_file(self._folder, most)
        return f"The lexical index is damaged: {damaged} is not as it was written." if damaged else ""

    def clear(self) -> None:
        with self._committing() as writer:
            writer.delete_all_documents()

    def close(self) -> None:
        """Wait for merges and let the folder go."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with self._translating_errors():
                writer.wait_merging_threads()

    def _translating_errors(self) -> AbstractContextManager[None]:
        return _translate_tantivy_errors(self._folder)

    @contextmanager
    def _committing(self) -> Iterator[Any]:
        """Commit what the block writes, and let searches see it."""
        with self._translating_errors():
            if self._writer is None:
                self._writer = self._index.writer(HEAP_BYTES, 1)
            yield self._writer
            self._writer.commit()
            self._index.reload()

    def _remember(self, languages: set[str]) -> None:
        if not languages <= self._languages:
            self._languages |= languages
            _write_stamp(self._folder, sorted(self._languages))

    def _expand(self, text: str) -> list[tuple[str, ...]]:
        """Return for each term of a question its forms in the indexed languages."""
        asked = detect_language(text)
        languages = [asked] if asked in self._languages else [asked, *sorted(self._languages)]
        informative = content_words(text, asked) or words(text)
        return [group for word in informative for group in expand_term_forms(word, languages)]

    def _query(self, groups: list[tuple[str, ...]], corpora: Sequence[str]) -> Any:
        from tantivy import Occur, Query

        schema = self._index.schema
        each = [[Query.term_query(schema, "body", term, "freq") for term in group] for group in groups]
        should = [(Occur.Should, group[0] if len(group) == 1 else Query.disjunction_max_query(group)) for group in each]
        scope = Query.const_score_query(Query.term_set_query(schema, "corpus", list(corpora)), 0.0)
        return Query.boolean_query([(Occur.Must, Query.boolean_query(should)), (Occur.Must, scope)])


def expand_term_forms(word: str, languages: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each term of `word` its forms in these languages; the first decides how many terms there are."""
    forms = [terms(word, language) for language in languages]
    if len({len(form) for form in forms}) > 1:
        forms = forms[:1]
    return [tuple(dict.fromkeys(group)) for group in zip(*forms, strict=True)]


def _translate_tantivy_errors(folder: Path) -> AbstractContextManager[None]:
    return translate_index_errors("the lexical index", folder, ValueError, OSError)


def _create_index(folder: Path) -> Any:
    import tantivy

    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_stamp(folder, [])
    except OSError as error:
        raise explain_folder_error(error, folder) from error
    builder = tantivy.SchemaBuilder()
    for name in ("id", "corpus", "hash"):
        builder.add_text_field(name, stored=name != "corpus", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
    with _translate_tantivy_errors(folder):
        return _register_analyzer(tantivy.Index(builder.build(), path=str(folder)))


def _open_index(folder: Path) -> Any:
    import tantivy

    if _read_stamp(folder)["schema"] != INDEX_SCHEMA:
        raise IndexStale("The lexical index was made by another version of Footnote.", hint=REINDEX_HINT)
    with _translate_tantivy_errors(folder):
        return _register_analyzer(tantivy.Index.open(str(folder)))


def _register_analyzer(index: Any) -> Any:
    from tantivy import TextAnalyzerBuilder, Tokenizer

    index.register_tokenizer(ANALYZER, TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    return index


def _find_damaged_file(folder: Path, most: float) -> str:
    """Return the name of a file whose content does not fit the checksum that tantivy wrote at its end.

    A search over it would fail, panic, or find other passages without a word.
    """
    segments = json.loads((folder / "meta.json").read_text())["segments"]
    for segment in segments:
        name = segment["segment_id"].replace("-", "")
        deleted = f"{name}.{segment['deletes']['opstamp']}.del" if segment["deletes"] else ""
        for file in sorted(folder.glob(f"{name}.*")):
            most -= file.stat().st_size
            if most < 0:
                return ""
            if (file.suffix != ".del" or file.name == deleted) and not _has_its_checksum(file):
                return file.name
    return ""


def _has_its_checksum(file: Path) -> bool:
    content = memoryview(file.read_bytes())
    try:
        length, _ = struct.unpack("<II", content[-_FOOTER_END:])
        end = len(content) - _FOOTER_END - length
        written = json.loads(bytes(content[end:-_FOOTER_END]))["crc"]
    except (struct.error, ValueError, LookupError, TypeError):
        return False
    return bool(zlib.crc32(content[:end]) == written)


def _read_stamp(folder: Path) -> dict[str, Any]:
    stamp: dict[str, Any] = {"schema": 0, "languages": []}
    with suppress(OSError, ValueError):
        stamp |= json.loads((folder / "stamp.json").read_text())
    return stamp


def _write_stamp(folder: Path, languages: list[str]) -> None:
    new = folder / "stamp.json.new"
    new.write_text(json.dumps({"schema": INDEX_SCHEMA, "languages": languages}))
    new.replace(folder / "stamp.json")
