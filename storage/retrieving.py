"""Asks both indexes for candidates; `storage.passages` joins them with the manifest and fuses their scores."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from storage.dense import DenseIndex
from storage.embedding import Embedder
from storage.lexical import LexicalIndex
from storage.workers import Worker

Group = Sequence[str]
"""Corpora that compete with each other; each group has as many candidates as another."""


@dataclass(frozen=True)
class Threads:
    """The named threads that the store's blocking calls run in."""

    read: Worker
    write: Worker
    embed: Worker
    ingest: Worker
    states: Worker
    think: Worker
    """One alone, for what computes in Python: of several each waits for the interpreter as long, and so do all others,
    first of all the database's writer."""

    @staticmethod
    def started(stack: ExitStack) -> "Threads":
        """Start the threads; they end with `stack`."""
        names = {"read": 4, "write": 1, "embed": 2, "ingest": 1, "states": 2, "think": 1}
        return Threads(**{name: stack.enter_context(Worker(f"index-{name}", threads=n)) for name, n in names.items()})


@dataclass(frozen=True)
class Retriever:
    """The two indexes, and who embeds the question."""

    dense: DenseIndex
    lexical: LexicalIndex
    embedder: Embedder
    threads: Threads

    async def candidates(self, text: str, groups: Sequence[Group], k: int) -> tuple[dict[str, float], dict[str, float]]:
        """Return the cosine of the `k` nearest passages of each group, and the BM25 of its `k` best, both by id."""
        near, worded = await asyncio.gather(self._near(text, groups, k), self._worded(text, groups, k))
        return near, worded

    async def _near(self, text: str, groups: Sequence[Group], k: int) -> dict[str, float]:
        if self.embedder.knows(text) == 0:
            return {}
        vector = (await self.threads.embed.run(self.embedder.embed, [text]))[0]
        corpora = [corpus for group in groups for corpus in group]
        found = await asyncio.gather(
            *(self.threads.read.run(self.dense.search, corpus, vector, k) for corpus in corpora)
        )
        of = dict(zip(corpora, found, strict=True))
        merged = ({key: cosine for corpus in group for key, cosine in of[corpus].items()} for group in groups)
        return {key: cosine for scores in merged for key, cosine in _best(scores, k)}

    async def _worded(self, text: str, groups: Sequence[Group], k: int) -> dict[str, float]:
        found = await asyncio.gather(*(self.threads.read.run(self.lexical.search, text, group, k) for group in groups))
        return {key: score for scores in found for key, score in scores.items()}


def apart(corpora: Sequence[str], references: Collection[str]) -> list[Group]:
    """Return the team's own corpora, then the works of reference, where there are both; else all in one group.

    Many of these never crowd out few of those.
    """
    own = [corpus for corpus in corpora if corpus not in references]
    return [group for group in (own, [corpus for corpus in corpora if corpus in references]) if group]


def _best(scores: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
