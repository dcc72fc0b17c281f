"""A long page as the few passages of it that would be offered for a claim."""

from collections.abc import Sequence

from storage.language.words import content_terms, count_words

LARGEST = 120
"""Words of a passage: as many as of one that is ingested."""
MOST = 3
"""Passages offered for a claim."""


def chunked(sentences: Sequence[str], largest: int = LARGEST) -> list[range]:
    """Return runs of neighbouring sentences, in order, each of at most `largest` words or of one long sentence."""
    runs: list[range] = []
    start = words = 0
    for place, sentence in enumerate(sentences):
        more = count_words(sentence)
        if place > start and words + more > largest:
            runs.append(range(start, place))
            start, words = place, 0
        words += more
    return [*runs, range(start, len(sentences))] if sentences else []


def joined(sentences: Sequence[str], run: Sequence[int]) -> str:
    """Return the text of a run of sentences, each on a line of its own: on a page, many of them are no prose."""
    return "\n".join(sentences[place] for place in run)


def most_alike(claim: str, passages: Sequence[str], most: int = MOST) -> tuple[str, ...]:
    """Return the passages that hold most of the claim's content terms, in their own order; earlier ones at a tie."""
    wanted = set(content_terms(claim))
    shared = [len(wanted & set(content_terms(passage))) for passage in passages]
    best = sorted(range(len(passages)), key=lambda place: (-shared[place], place))[:most]
    return tuple(passages[place] for place in sorted(best))


def covering(sentences: Sequence[str], needed: Sequence[int], most: int = MOST) -> tuple[str, ...]:
    """Return the passages that hold the needed sentences with their neighbours.

    Where they lie in more than `most` passages, they alone are packed into as few as they fit in.
    """
    around = [run for run in chunked(sentences) if any(place in run for place in needed)]
    if len(around) <= most:
        return tuple(joined(sentences, run) for run in around)
    alone = [sentences[place] for place in sorted(needed)]
    return tuple(joined(alone, run) for run in chunked(alone))
