"""A turn while documents change under it."""

from dataclasses import replace

from bot.answering.turn_kit import require_existing, snapshot_search
from pipeline.types import Support
from storage.types import Document, Evidence, Hit, Passage, SearchQuery

OLD, NEW = Document("c", "a", "A", revision="1"), Document("c", "a", "A", revision="2")
OTHER = Document("c", "b", "B", revision="9")
HOLDS = Support(0.9, holds=True)


def hit(document, text):
    return Hit(Passage(text, document.corpus, document.key, "", text, 0, "hash"), document, 1.0)


def evidence(*documents):
    return [Evidence("Text.", hit(document, "Text.").passage, document, (0, 5)) for document in documents]


async def test_later_searches_drop_other_versions():
    rounds = [(hit(OLD, "one"),), (hit(NEW, "two"), hit(OTHER, "three")), (hit(OLD, "four"),)] * 2
    answers = iter(rounds)

    async def search(_query, _k):
        return next(answers)

    first = snapshot_search(search)
    found = [[one.passage.text for one in await first(SearchQuery("q"), 5)] for _ in range(3)]
    second = snapshot_search(search)

    assert found == [["one"], ["three"], ["four"]]
    assert await second(SearchQuery("q"), 5) == rounds[0]


async def test_citing_a_removed_document_fails():
    now = {("c", "a"): NEW}

    async def supports(_sentence, _evidence, **_asked):
        return HOLDS

    async def there(corpus, key):
        return now.get((corpus, key))

    check = require_existing(supports, there)

    assert await check("Text.", evidence(OLD)) == HOLDS
    assert await check("Text.", evidence(OLD, OTHER)) == Support(
        0.9, holds=False, reasons=("a document that it cites was removed meanwhile",)
    )


async def test_unsupported_sentence_is_not_looked_up():
    looked = []
    said = {"no": Support(0.1, holds=False), "perhaps": Support(0.4, holds=False, appealable=True)}

    async def supports(sentence, _evidence, **_asked):
        return said[sentence]

    async def there(corpus, key):
        looked.append((corpus, key))

    check = require_existing(supports, there)

    assert await check("no", evidence(OLD)) == said["no"]
    assert looked == []
    assert await check("perhaps", evidence(OLD)) == replace(
        said["perhaps"], appealable=False, reasons=("a document that it cites was removed meanwhile",)
    )
