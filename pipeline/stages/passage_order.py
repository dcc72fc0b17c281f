"""Order passages by the cross-encoder, which reads the question together with each of the first ones found."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pipeline.extraction.answer_ranking import TRUSTED, measure_trust
from pipeline.extraction.candidates import write_context
from pipeline.kit import Kit
from pipeline.types import Turn
from storage.language.detection import detect_language
from storage.types import Hit

MOST_READ = 10  # passages read for one question; with twenty, no more answers to unseen questions were right
FIRST_READ = 3  # passages read before it is decided whether the others are read, too
SURE, FAR_AHEAD = 6.0, 3.0
"""Log-odds of the best of them, and their lead over the second, from which no other is read.

From 5, answers to unseen questions were lost.
"""
FOUND_WEIGHT = 0.3  # log-odds that one deviation of the search's score is worth


def find_answer_language(turn: Turn, hits: Sequence[Hit]) -> str:
    """Return the question's language if a page is in it, else that of most pages: short texts are misdetected."""
    spoken = turn.language or detect_language(turn.text)
    languages = Counter(hit.document.language for hit in hits if hit.document.language)
    return spoken if spoken in languages or not languages else languages.most_common(1)[0][0]


async def read_passages(query: str, language: str, hits: Sequence[Hit], kit: Kit, shares: int = 1) -> dict[str, float]:
    """Return the log-odds that the first passages answer a question, by their ids.

    It is empty if the cross-encoder does not know the language, or if there is none. Of several searches for one
    question, each reads one of so many `shares` of the passages, but not fewer than `FIRST_READ`.
    """
    logits = dict[str, float]()
    if measure_trust(query, language) < TRUSTED:
        return logits
    for part in (hits[:FIRST_READ], hits[FIRST_READ : MOST_READ // shares]):
        best, second = sorted([*logits.values(), 0.0, 0.0])[:-3:-1]
        if part and (best < SURE or best - second < FAR_AHEAD):
            scores = await kit.rerank(query, [write_context(hit, hit.passage.text) for hit in part])
            logits.update((hit.passage.id, score) for hit, score in zip(part, scores, strict=False))
    return logits


def order_by_logits(hits: Sequence[Hit], logits: Mapping[str, float]) -> tuple[Hit, ...]:
    """Return the hits that were read, best first, and then the others in their order."""
    read = [hit for hit in hits if hit.passage.id in logits]
    read.sort(key=lambda hit: logits[hit.passage.id] + FOUND_WEIGHT * hit.score, reverse=True)
    return (*read, *(hit for hit in hits if hit.passage.id not in logits))
