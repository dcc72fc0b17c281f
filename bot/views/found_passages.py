"""The passages that a turn on record speaks of, by their ids, as they were then. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.types import Document, EntryKind, LogEntry, Passage


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage with its document's names."""

    id: str
    corpus: str
    document: str
    title: str = ""
    section: str = ""
    text: str = ""  # empty where neither the record nor the index has it any more
    url: str = ""


def list_passage_ids(entries: Iterable[LogEntry]) -> tuple[str, ...]:
    """Return the ids of all passages that were found or named as evidence, each once."""
    bodies = [entry.body for entry in entries]
    found = [str(hit[0]) for body in bodies for hit in body.get("hits", ()) if hit]
    named = [str(one) for body in bodies for claim in body.get("claims", ()) for one in claim.get("evidence", ())]
    return tuple(dict.fromkeys([*found, *named]))


def collect_passages(
    entries: Sequence[LogEntry], indexed: Mapping[str, tuple[Passage, Document]]
) -> dict[str, FoundPassage]:
    """Return by id what is known of the passages of a turn: by its record, and else by the index of today.

    An id is made of a passage's words, so that what the index has by it is what was found then.
    """
    known = {one.id: one for one in _list_hits(entries)}
    known |= {key: _describe(passage, document) for key, (passage, document) in indexed.items()}
    return known | {one.id: one for one in _list_recorded(entries)}


def _list_hits(entries: Iterable[LogEntry]) -> Iterator[FoundPassage]:
    for entry in entries:
        for hit in entry.body.get("hits", ()):
            passage, _score, corpus, document = (*hit, "", "", "", "")[:4]
            yield FoundPassage(str(passage), str(corpus), str(document))


def _list_recorded(entries: Iterable[LogEntry]) -> Iterator[FoundPassage]:
    for entry in entries:
        kept = entry.body.get("kept", ()) if entry.kind is EntryKind.STEP else entry.body.get("nearest", ())
        for page in kept:
            passage, document = page.get("passage") or {}, page.get("document") or {}
            yield FoundPassage(
                str(passage.get("id") or page.get("passage_id", "")),
                str(passage.get("corpus", "")),
                str(passage.get("document", "")),
                str(document.get("title") or page.get("title", "")),
                str(passage.get("section", "")),
                str(passage.get("text", "")),
                str(document.get("url") or page.get("url", "")),
            )
        for cited in entry.body.get("citations", ()):
            yield _describe_citation(cited)


def _describe_citation(cited: Mapping[str, Any]) -> FoundPassage:
    identity, corpus, document = (str(cited.get(name, "")) for name in ("passage_id", "corpus", "document"))
    title, section, text, url = (str(cited.get(name, "")) for name in ("title", "section", "passage_text", "url"))
    return FoundPassage(identity, corpus, document, title, section, text, url)


def _describe(passage: Passage, document: Document) -> FoundPassage:
    return FoundPassage(
        passage.id, passage.corpus, passage.document, document.title, passage.section, passage.text, document.url
    )
