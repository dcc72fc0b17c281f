"""The lexical index: BM25 in tantivy over the terms of `storage.language.words`, for all corpora. Calls block."""

import json
import shutil
import struct
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from storage.database.document_versions import StoredVersion
from storage.errors import REINDEX_HINT, IndexStale, explain_folder_error, translate_index_errors
from storage.indexes.embedding import INDEX_SCHEMA, aliases_text, indexed_text
from storage.language.detection import detect_language
from storage.language.words import content_words, terms, words
from storage.types import Document, Passage

ANALYZER = "terms"
HEAP_BYTES = 64_000_000
CHECKED_BYTES = 32_000_000  # of its files are verified whenever it is opened: takes some hundredths of a second
WITHOUT_SCOPE = 0.5  # if the scope is at least this share of the index, searching everything is faster
SPARE_HITS = 50  # extra hits of such a search, as some may be out of scope
_FOOTER_END = 8  # bytes: the footer's length, and a magic number


Place = tuple[int, int]  # a passage: the number of its document's version, and its position there


@dataclass(frozen=True, slots=True)
class IndexedVersion:
    """A version of a document in the form that is indexed."""

    number: int
    corpus: str
    language: str
    terms: Sequence[str]  # the terms of each passage in order, joined by spaces


def index_version(version: StoredVersion) -> IndexedVersion:
    document = version.document
    return IndexedVersion(version.number, document.corpus, document.language, passage_terms(document, version.passages))


def passage_terms(document: Document, passages: Iterable[Passage]) -> tuple[str, ...]:
    """Return the terms of each passage of a document, joined by spaces."""
    texts = ("\n".join((indexed_text(document, passage), aliases_text(document, passage))) for passage in passages)
    return tuple(" ".join(terms(text, document.language)) for text in texts)


class LexicalIndex:
    """A tantivy index in its own folder. It records the manifest change up to which it is complete."""

    def __init__(self, folder: Path, *, rebuilding: bool = False) -> None:
        """Open the index in `folder`, or create an empty one. Raises `IndexStale` if it cannot be used.

        With `rebuilding`, a new index is started next to it, or an earlier rebuild is continued. Then `switch` replaces
        the old index.
        """
        self._target = folder
        self._folder = folder = folder.with_name(f"{folder.name}.new") if rebuilding else folder
        self._writer: Any = None
        self._index = _open_index(folder) if (folder / "meta.json").exists() else _create_index(folder)
        self._stamp = _read_stamp(folder)
        self._switching = threading.Lock()
        self.followed: int = self._stamp["followed"]
        """The last change of the manifest that a search sees."""

    @property
    def name(self) -> str:
        """The name of this index in the manifest's list of followers; no other index has it."""
        return str(self._stamp["name"])

    def follow(self, added: Iterable[IndexedVersion], retired: Iterable[int], upto: int) -> None:
        """Add versions, remove retired ones, and commit. From then on, searches see the manifest change `upto`.

        After an error, the call may be repeated.
        """
        tantivy = _load_tantivy()
        versions = tuple(added)
        reached = self._stamp["reached"]  # it may already hold versions newer than `followed`
        languages = {*self._stamp["languages"], *(version.language for version in versions if version.terms)}
        self._write_stamp(reached=max(reached, upto), languages=sorted(languages))
        with self._translating_errors():
            writer = self._open_writer()
            for number in retired:
                writer.delete_documents_by_term("number", number)
            for version in versions:
                if version.number <= reached:
                    writer.delete_documents_by_term("number", version.number)
                for position, body in enumerate(version.terms):
                    place = {"number": version.number, "position": position}
                    writer.add_document(tantivy.Document(**place, corpus=version.corpus, body=body))
            writer.commit()
            with self._switching:
                self._index.reload()
                self.followed = upto
        self._write_stamp(followed=upto)

    def search(self, text: str, corpora: Sequence[str], k: int) -> tuple[dict[Place, float], int]:
        """Return the BM25 scores of the `k` best passages that share a term with the text.

        Also return the manifest change up to which the index had followed at the time of the search.
        """
        groups = self._expand(text)
        with self._translating_errors():
            with self._switching:
                searcher, followed = self._index.searcher(), self.followed
            if not groups or not corpora:
                return {}, followed
            return self._find_all(searcher, groups, corpora, k) or self._find_scoped(
                searcher, groups, corpora, k
            ), followed

    def places(self) -> frozenset[Place]:
        """Return the place of every passage in the index."""
        tantivy = _load_tantivy()
        with self._translating_errors():
            searcher = self._index.searcher()
            if not searcher.num_docs:
                return frozenset()
            hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False)
            return frozenset(_place(searcher.doc(address)) for _, address in hits.hits)

    def count(self) -> int:
        with self._translating_errors():
            return int(self._index.searcher().num_docs)

    def stale(self, expected: int, *, most: float = CHECKED_BYTES) -> str:
        """Return the reason if the index cannot serve `expected` passages; empty if it can.

        At most `most` bytes of its files are compared with their checksums.
        """
        if (count := self.count()) < expected:
            return f"The lexical index holds {count:,} of {expected:,} passages."
        damaged = _find_damaged_file(self._folder, most)
        return f"The lexical index is damaged: {damaged} is not as it was written." if damaged else ""

    def clear(self) -> None:
        """Remove everything. Afterwards, the index has not followed any change."""
        with self._translating_errors():
            self._write_stamp(followed=0)
            writer = self._open_writer()
            writer.delete_all_documents()
            writer.commit()
            with self._switching:
                self._index.reload()
                self.followed = 0

    def begin_again(self) -> None:
        """Clear the index if it is rebuilt in place. An index that is rebuilt next to the old one keeps its content."""
        if self._folder == self._target:
            self.clear()

    def switch(self) -> None:
        """Replace the old index by the rebuilt one. Raises `StorageError`."""
        if self._folder == self._target:
            return
        self.close()
        try:
            shutil.rmtree(self._target, ignore_errors=True)
            self._folder.rename(self._target)
        except OSError as error:
            raise explain_folder_error(error, self._target) from error
        self._folder = self._target
        with self._switching:
            self._index = _open_index(self._folder)

    def close(self) -> None:
        """Wait until tantivy has merged its files, and release the folder."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with self._translating_errors():
                writer.wait_merging_threads()

    def _translating_errors(self) -> AbstractContextManager[None]:
        return _translate_tantivy_errors(self._folder)

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(HEAP_BYTES, 1)
        return self._writer

    def _write_stamp(self, **values: Any) -> None:
        if any(self._stamp[name] != value for name, value in values.items()):
            stamp = self._stamp | values
            try:
                _write_stamp(self._folder, stamp)
            except OSError as error:
                raise explain_folder_error(error, self._folder) from error
            self._stamp = stamp

    def _expand(self, text: str) -> list[tuple[str, ...]]:
        """Return, for each term of a question, its forms in the question's language and in the indexed languages."""
        language = detect_language(text)
        known = self._stamp["languages"]
        languages = [language] if language in known else [language, *known]
        informative = content_words(text, language) or words(text)
        return [group for word in informative for group in expand_term_forms(word, languages)]

    def _find_all(
        self, searcher: Any, groups: list[tuple[str, ...]], corpora: Sequence[str], k: int
    ) -> dict[Place, float] | None:
        """Search the whole index, and keep the hits of these corpora. That is faster if they are most of the index.

        Return None if these corpora are too small a part, or if hits of theirs might be missing.
        """
        within = sum(searcher.doc_freq("corpus", corpus) for corpus in corpora)
        if within < WITHOUT_SCOPE * searcher.num_docs:
            return None
        depth = k + SPARE_HITS
        result = searcher.search(self._query(groups), limit=depth, count=False)
        documents = [(searcher.doc(address), score) for score, address in result.hits]
        scores = {_place(one): score for one, score in documents if one["corpus"][0] in corpora}
        if len(scores) < k and len(result.hits) == depth:
            return None
        return dict(list(scores.items())[:k])

    def _find_scoped(
        self, searcher: Any, groups: list[tuple[str, ...]], corpora: Sequence[str], k: int
    ) -> dict[Place, float]:
        tantivy = _load_tantivy()
        of_corpora = tantivy.Query.term_set_query(self._index.schema, "corpus", list(corpora))
        scope = tantivy.Query.const_score_query(of_corpora, 0.0)
        must = tantivy.Occur.Must
        query = tantivy.Query.boolean_query([(must, self._query(groups)), (must, scope)])
        hits = searcher.search(query, limit=k, count=False)
        return {_place(searcher.doc(address)): float(score) for score, address in hits.hits}

    def _query(self, groups: list[tuple[str, ...]]) -> Any:
        schema, tantivy = self._index.schema, _load_tantivy()
        query = tantivy.Query
        each = [[query.term_query(schema, "body", term, "freq") for term in group] for group in groups]
        parts = [group[0] if len(group) == 1 else query.disjunction_max_query(group) for group in each]
        return query.boolean_query([(tantivy.Occur.Should, part) for part in parts])


def _place(document: Any) -> Place:
    return document["number"][0], document["position"][0]


def expand_term_forms(word: str, languages: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, for each term of `word`, its forms in these languages.

    If the languages do not have the same number of terms for the word, only those of the first language are returned.
    """
    forms = [terms(word, language) for language in languages]
    if len({len(form) for form in forms}) > 1:
        forms = forms[:1]
    return [tuple(dict.fromkeys(group)) for group in zip(*forms, strict=True)]


def _load_tantivy() -> Any:
    import tantivy  # slow, and not needed by commands that search nothing

    return tantivy


def _translate_tantivy_errors(folder: Path) -> AbstractContextManager[None]:
    return translate_index_errors("the lexical index", folder, ValueError, OSError)


def _create_index(folder: Path) -> Any:
    tantivy = _load_tantivy()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_stamp(folder, {**_EMPTY_STAMP, "schema": INDEX_SCHEMA, "name": uuid4().hex})
    except OSError as error:
        raise explain_folder_error(error, folder) from error
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("number", stored=True, indexed=True)
    builder.add_integer_field("position", stored=True)
    builder.add_text_field("corpus", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
    with _translate_tantivy_errors(folder):
        return _prepare(tantivy.Index(builder.build(), path=str(folder)))


def _open_index(folder: Path) -> Any:
    tantivy = _load_tantivy()
    if _read_stamp(folder)["schema"] != INDEX_SCHEMA:
        raise IndexStale("The lexical index was made by another version of Footnote.", hint=REINDEX_HINT)
    with _translate_tantivy_errors(folder):
        return _prepare(tantivy.Index.open(str(folder)))


def _prepare(index: Any) -> Any:
    tantivy = _load_tantivy()
    index.config_reader(reload_policy="manual")  # so that searches see new content and its change number together
    index.register_tokenizer(ANALYZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    return index


def _find_damaged_file(folder: Path, most: float) -> str:
    """Return the first file that does not match tantivy's checksum, or "". At most `most` bytes are read."""
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


_EMPTY_STAMP: Mapping[str, Any] = {"schema": 0, "languages": [], "name": "", "followed": 0, "reached": 0}


def _read_stamp(folder: Path) -> dict[str, Any]:
    stamp = dict(_EMPTY_STAMP)
    with suppress(OSError, ValueError):
        stamp |= json.loads((folder / "stamp.json").read_text())
    return stamp


def _write_stamp(folder: Path, stamp: Mapping[str, Any]) -> None:
    new = folder / "stamp.json.new"
    new.write_text(json.dumps(stamp))
    new.replace(folder / "stamp.json")
