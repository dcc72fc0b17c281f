"""Find what the bot introduces itself with: the corpora that may be read somewhere, and questions that they answer."""

from collections.abc import Collection
from itertools import chain, zip_longest

from bot.views.introduction_view import MAX_CORPORA, Introduction, suggest_questions
from storage.manifest import Manifest
from storage.types import Hit

MAX_QUESTIONS = 3  # that are suggested
_SAMPLED = 24  # documents that are looked at for questions, of all corpora together


async def load_introduction(manifest: Manifest, readable: Collection[str], language: str) -> Introduction:
    """Return the introduction of these corpora. Raises `StorageError`.

    Questions are about a team's own documents; about works of reference only where there are no others.
    """
    there = tuple(one for one in await manifest.corpora() if one.name in readable and one.documents)[:MAX_CORPORA]
    reference = {one.name for one in await manifest.catalogue() if one.reference}
    asked = [one.name for one in there if one.name not in reference] or [one.name for one in there]
    count = max(_SAMPLED // max(len(asked), 1), 4)
    sampled = {one.name: await manifest.sample(one.name, count if one.name in asked else 1) for one in there}
    suggested = [suggest_questions(sampled[name], language) for name in asked]
    in_turn = [one for one in chain.from_iterable(zip_longest(*suggested)) if one][:MAX_QUESTIONS]
    shown = {one.source.passage.corpus for one in in_turn}
    others = (sampled[one.name] for one in there if one.name not in shown)
    first = (Hit(one.passages[0], one.document, 0.0) for (one, *_) in filter(None, others) if one.passages)
    return Introduction(there, tuple(in_turn), (*(one.source for one in in_turn), *first))
