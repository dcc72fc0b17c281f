"""A turn sees one version of each document, even when documents change meanwhile."""

from bot.answering.turn_kit import snapshot_search
from storage.types import Document, Hit, Passage, SearchQuery

OLD, NEW = Document("c", "a", "A", revision="1"), Document("c", "a", "A", revision="2")
OTHER = Document("c", "b", "B", revision="9")


def hit(document, text):
    return Hit(Passage(text, document.corpus, document.key, "", text, 0, "hash"), document, 1.0)


async def test_later_searches_of_a_turn_omit_other_versions_of_found_pages():
    rounds = [(hit(OLD, "one"),), (hit(NEW, "two"), hit(OTHER, "three")), (hit(OLD, "four"),)] * 2
    answers = iter(rounds)

    async def search(_query, _k):
        return next(answers)

    first = snapshot_search(search)
    found = [[hit.passage.text for hit in await first(SearchQuery("q"), 5)] for _ in range(3)]
    second = snapshot_search(search)

    assert found == [["one"], ["three"], ["four"]]
    assert await second(SearchQuery("q"), 5) == rounds[0]
