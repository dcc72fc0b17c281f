"""Altered sentences made from true ones by a seeded generator, and harmless variants of the same.

A true sentence stands in its passage. An alteration changes one thing in it so that the passage no longer says it, a
variant only its wording. What proposes either stands in `changes`; here it is decided which proposal is made.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from evaluation.claims.changes import dates, names, numbers, units, wording
from evaluation.claims.changes.neighbours import NEIGHBOURS
from evaluation.claims.changes.types import Change, Changer, stands
from ingest.chunking import passages
from ingest.types import Found, Source, UnreadableDocument
from pipeline.spans import quotable_spans
from storage.language.words import count_words, words
from storage.types import Kind, Passage

TRUE = "as it stands"
HARMLESS: Mapping[str, Changer] = MappingProxyType({
    "number respelled": numbers.respelled,
    "unit respelled": units.respelled,
    "date reordered": dates.reordered,
    "opening dropped": wording.opening_dropped,
    "article dropped": wording.article_dropped,
    "contracted": wording.contracted,
    "retyped": wording.retyped,
})  # fmt: skip
"""Changes that leave what a sentence says alone."""

_FEWEST_WORDS, _MOST_WORDS = 6, 45


@dataclass(frozen=True, slots=True)
class TrueSentence:
    """A sentence, and the passage that it is taken from."""

    text: str
    passage: str


@dataclass(frozen=True, slots=True)
class Altered:
    """A sentence as it was changed, of what kind, and whether its passage still says it."""

    kind: str
    change: Change
    origin: TrueSentence
    true: bool


def true_sentences(source: Source) -> Iterator[TrueSentence]:
    """Yield the whole sentences of prose of a source's documents, each with its passage. Blocks."""
    for found in source.documents({}):
        for passage in _passages(found) if isinstance(found, Found) else ():
            spans = quotable_spans(passage) if passage.kind is Kind.PROSE else ()
            yield from (TrueSentence(passage.text[slice(*span)], passage.text) for span in spans)


def usable(sentence: TrueSentence) -> bool:
    """Return whether a sentence is one: with a capital and a full stop, on one line, neither short nor endless."""
    text = sentence.text
    whole = text[:1].isupper() and text.endswith(".") and "\n" not in text
    return whole and _FEWEST_WORDS <= count_words(text) <= _MOST_WORDS


def changers(pool: Sequence[TrueSentence]) -> Mapping[str, Changer]:
    """Return every kind of alteration; names are swapped for those of the sentences of `pool`.

    A word that stands there in small letters too, such as "teacher", is no name to put in the place of another.
    """
    common = {word for sentence in pool for word in words(sentence.text) if word.islower()}
    named = (name for sentence in pool for name in names.names(sentence.text))
    return {
        "number": numbers.changed,
        "name": names.swapper([name for name in named if name.text.lower() not in common]),
        "negation added": wording.negated,
        "negation removed": wording.affirmed,
        "year": dates.year_moved,
        "month": dates.month_moved,
        "day": dates.day_moved,
        "unit": units.changed,
        "comparison": wording.compared,
        "roles": names.turned,
    }


def chosen(sentences: Sequence[TrueSentence], count: int, rng: Random) -> list[TrueSentence]:
    """Return `count` sentences at random, or fewer where there are no more, so that no kind of alteration lacks some.

    Kinds take turns in choosing one that they can alter; where that leaves places, any that can be altered fills them.
    """
    usables = list(dict.fromkeys(filter(usable, sentences)))
    candidates = rng.sample(usables, len(usables))
    queues = [_alterable(candidates, change, rng) for change in changers(candidates).values()]
    found: dict[TrueSentence, None] = {}
    while queues and len(found) < count:
        for queue in list(queues):
            fresh = next((sentence for sentence in queue if sentence not in found), None)
            if fresh is None:
                queues.remove(queue)
            elif len(found) < count:
                found[fresh] = None
    return list(found)


def altered(sentences: Sequence[TrueSentence], rng: Random) -> Iterator[Altered]:
    """Yield each sentence as it stands, then one alteration of each kind and one variant of each that it allows.

    Last come the alterations with what the passage says elsewhere, by a generator of their own: the others stay as
    they are without them.
    """
    kinds = changers(sentences)
    for sentence in sentences:
        yield Altered(TRUE, Change(sentence.text, "", ""), sentence, true=True)
        for true, several in ((True, HARMLESS), (False, kinds)):
            for kind, change in several.items():
                found = _first(sentence, change, rng)
                if found:
                    yield Altered(kind, found, sentence, true=true)
    own = Random(rng.random())
    for sentence in sentences:
        for kind, taking in NEIGHBOURS.items():
            proposed = taking(sentence.text, sentence.passage, own)
            found = next((change for change in proposed if really(change, sentence.passage)), None)
            if found:
                yield Altered(kind, found, sentence, true=False)


def really(change: Change, passage: str) -> bool:
    """Return whether a change makes a sentence that does not stand in the passage, nor does the new value in it."""
    return change.text not in passage and not any(stands(value, passage) for value in change.absent)


def _passages(found: Found) -> tuple[Passage, ...]:
    """Return the passages of a document; none of one that cannot be read."""
    try:
        return passages("", found.key, found.load())
    except UnreadableDocument:
        return ()


def _alterable(sentences: Sequence[TrueSentence], change: Changer, rng: Random) -> Iterator[TrueSentence]:
    return (sentence for sentence in sentences if _first(sentence, change, rng))


def _first(sentence: TrueSentence, change: Changer, rng: Random) -> Change | None:
    return next((found for found in change(sentence.text, rng) if really(found, sentence.passage)), None)
