"""Ask both indexes for candidates, join these with one state of the manifest, and fuse their scores.

Scores are fused, not ranks. The scores of each index are scaled to mean 0 and deviation 1 over all candidates, and then
added, which preserves a clear lead of the first. Reciprocal rank fusion was worse on every tested set.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storage.database.bodies import PackedVersion
from storage.database.document_versions import PassageRef
from storage.database.worker_threads import ThreadPool
from storage.indexes.dense import DenseIndex
from storage.indexes.embedders import find_model
from storage.indexes.embedding import Vectors
from storage.indexes.lexical import LexicalIndex, Place
from storage.manifest import Manifest
from storage.search.corpus_embedders import CorpusEmbedders
from storage.search.lazy_vectors import PassageRow
from storage.types import DenseMode, Document, Hit, Passage

CorpusGroup = Sequence[str]  # corpora that compete with each other; all groups have the same number of candidates
Scores = Mapping[str, float]  # passage id -> a retriever's score; higher is better, 0 means nothing in common


def complete_scores(scores: Scores, candidates: Collection[str], asked: int) -> dict[str, float]:
    """Return a score for every candidate, from an index that was asked for its best `asked`.

    A candidate that the index did not return gets the lowest returned score. But if the index returned fewer than
    `asked`, the candidate has nothing in common with the query, and gets 0.
    """
    floor = min(scores.values(), default=0.0) if len(scores) >= asked else 0.0
    return {key: scores.get(key, floor) for key in candidates}


def standardise_scores(scores: Scores) -> dict[str, float]:
    """Scale the scores to mean 0 and deviation 1; all 0 if they are equal."""
    values = scores.values()
    if not scores or min(values) == max(values):
        return dict.fromkeys(scores, 0.0)
    # `statistics.pstdev` takes a hundred times as long, for a last digit.
    mean = math.fsum(values) / len(scores)
    deviation = math.hypot(*(score - mean for score in values)) / math.sqrt(len(scores))
    return {key: (score - mean) / deviation if deviation else 0.0 for key, score in scores.items()}


def fuse_scores(
    dense: Scores,
    lexical: Scores,
    *,
    asked: int,
    trust: float | Scores = 1.0,
    left_out: Collection[str] = frozenset(),
    unasked: Collection[str] = frozenset(),
) -> list[tuple[str, float]]:
    """Return (id, fused score) of every candidate, best first, and by id if equal; those in `left_out` are skipped.

    Each index was asked for `asked` candidates. `trust`, from 0 to 1, is how well the embedder of all, or of each,
    knows the question's language: fully trusted, meaning counts twice as much as words, and not at all at 0. Candidates
    in `unasked` have no known dense score, and count as average.
    """
    candidates = {*dense, *lexical}.difference(left_out)
    near = standardise_scores(complete_scores(dense, candidates.difference(unasked), asked))
    worded = standardise_scores(complete_scores(lexical, candidates, asked))
    trusts = trust if isinstance(trust, Mapping) else dict.fromkeys(candidates, trust)
    fused = {key: _weigh(near.get(key, 0.0), worded[key], trusts[key]) for key in candidates}
    return sorted(fused.items(), key=rank_key)


def _weigh(near: float, worded: float, trust: float) -> float:
    meaning = trust * (1 + trust)
    scale = (1 + trust) / (1 + meaning)  # so that a bonus in deviations counts as much at any trust
    return scale * (meaning * near + worded)


def apply_bonus(ranking: Sequence[tuple[str, float]], bonus: Mapping[str, float]) -> list[tuple[str, float]]:
    """Add a bonus to the scores of some candidates and sort again; equal scores are sorted by id."""
    return sorted(((key, score + bonus.get(key, 0.0)) for key, score in ranking), key=rank_key)


def rank_key(item: tuple[str, float]) -> tuple[float, str]:
    """Return a sort key for (id, score): the highest score first, and by id if equal."""
    return -item[1], item[0]


def group_corpora(corpora: Sequence[str], references: Collection[str]) -> list[CorpusGroup]:
    """Separate the team's own corpora from works of reference, so that neither group crowds out the other."""
    own = [corpus for corpus in corpora if corpus not in references]
    return [group for group in (own, [corpus for corpus in corpora if corpus in references]) if group]


LAZY_DEPTH = 30  # a lazy corpus's best passages by words that are embedded for a question
SEARCH_ATTEMPTS = 4  # attempts of a search while a refresh commits to the same corpora


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates that either index found, by id, joined with one state of the manifest."""

    dense: Mapping[str, float]
    lexical: Mapping[str, float]
    listed: Mapping[str, tuple[Passage, Document]]
    preferred: frozenset[str]  # the team's own corpora, if works of reference are searched as well
    joined: int  # the number of candidates that are in the manifest
    left_out: frozenset[str] = frozenset()  # candidates of lazy corpora without a vector, which are dropped
    unasked: frozenset[str] = frozenset()  # candidates of corpora whose vectors were not asked
    trust: Mapping[str, float] = field(default_factory=dict)  # of each candidate's embedder, as in `fuse_scores`

    def fuse(self, asked: int) -> list[tuple[str, float]]:
        """Return `fuse_scores` of the candidates."""
        left_out, unasked = self.left_out, self.unasked
        return fuse_scores(self.dense, self.lexical, asked=asked, trust=self.trust, left_out=left_out, unasked=unasked)

    def make_hit(self, key: str, score: float) -> Hit:
        dense, lexical = self.dense.get(key, 0.0), self.lexical.get(key, 0.0)
        return Hit(*self.listed[key], score, dense, lexical, self.trust[key] if key in self.dense else 0.0)


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """Searches both indexes, and joins the results with the manifest."""

    manifest: Manifest
    dense: DenseIndex
    lexical: LexicalIndex
    read_pool: ThreadPool
    embed_pool: ThreadPool
    embedders: CorpusEmbedders
    read_lazy: Callable[[Sequence[PassageRow]], Awaitable[dict[str, Vectors]]]
    """Returns the vectors of passages of lazy corpora by id."""

    async def find(self, text: str, corpora: Sequence[str], k: int, depth: int = LAZY_DEPTH) -> Candidates:
        """Return the candidates of both indexes: for each group of corpora, the `k` nearest and the `k` best by words.

        In a lazy corpus, only passages with stored vectors and the `depth` best by words have a dense score; all others
        are left out. Both indexes and the manifest are read at one state: the manifest change that the lexical index
        has reached.
        """
        for _ in range(SEARCH_ATTEMPTS):
            catalogue = await self.manifest.catalogue()
            modes = {corpus.name: corpus.dense for corpus in catalogue}
            own, *reference = groups = group_corpora(corpora, {corpus.name for corpus in catalogue if corpus.reference})
            embedded = [name for name in corpora if modes.get(name) is not DenseMode.OFF]
            asked = await self.embed_pool.run(self._embed, text, embedded)
            near, (worded, followed) = await asyncio.gather(self._near(asked, groups, k), self._worded(text, groups, k))
            names = {(ref.corpus, ref.document) for ref in near}
            versions = await self.manifest.visible(followed, {number for number, _ in worded}, names, corpora)
            candidates = _join_candidates(near, worded, versions, frozenset(own if reference else ()))
            # A commit between the two searches may have replaced documents: then both are repeated.
            if candidates.joined == len(near) + len(worded) or self.lexical.followed == followed:
                break
        return await self._read_lazy(asked, candidates, groups, modes, depth)

    def _embed(self, text: str, corpora: Sequence[str]) -> "dict[str, _Asked]":
        """Embed a question for each of these corpora whose embedder knows its language, once per embedder."""
        embedders = {corpus: self.embedders.find(corpus) for corpus in corpora}
        asked: dict[str, _Asked] = {}
        for name, embedder in {one.name: one for one in embedders.values()}.items():
            if trust := embedder.knows(text):
                asked[name] = _Asked(name, trust, self.embedders.embed_question(embedder, text))
        return {corpus: asked[one.name] for corpus, one in embedders.items() if one.name in asked}

    async def _read_lazy(
        self,
        asked: "Mapping[str, _Asked]",
        candidates: Candidates,
        groups: Sequence[CorpusGroup],
        modes: Mapping[str, DenseMode],
        depth: int,
    ) -> Candidates:
        """Add dense scores to those passages of lazy corpora that are best by words; leave out others without one."""
        of = {key: passage.corpus for key, (passage, _) in candidates.listed.items()}
        most = max((question.trust for question in asked.values()), default=0.0)
        trust = {key: asked[corpus].trust if corpus in asked else most for key, corpus in of.items()}
        unasked = frozenset(key for key, corpus in of.items() if corpus not in asked)
        by_words = sorted(candidates.lexical.items(), key=rank_key)
        lazy = [key for key, _ in by_words if of[key] in asked and modes.get(of[key]) is DenseMode.LAZY]
        best = [key for group in groups for key in [key for key in lazy if of[key] in group][:depth]]
        new = [candidates.listed[key] for key in best if key not in candidates.dense]
        if lazy:
            vectors = await self.read_lazy([(document, passage) for passage, document in new])
            scores = {key: asked[of[key]].compare(vector) for key, vector in vectors.items()}
            dense = {**candidates.dense, **scores}
            candidates = replace(candidates, dense=dense, left_out=frozenset(lazy) - dense.keys())
        return replace(candidates, unasked=unasked, trust=trust)

    async def _near(
        self, asked: "Mapping[str, _Asked]", groups: Sequence[CorpusGroup], k: int
    ) -> dict[PassageRef, float]:
        searches = (
            self.read_pool.run(self.dense.search, corpus, question.vector, k, question.embedder)
            for corpus, question in asked.items()
        )
        found = zip(asked.items(), await asyncio.gather(*searches), strict=True)
        of = {
            corpus: {ref: find_model(question.embedder).scale(cosine) for ref, cosine in cosines.items()}
            for (corpus, question), cosines in found
        }
        merged = ([item for corpus in group if corpus in of for item in of[corpus].items()] for group in groups)
        return {ref: cosine for scores in merged for ref, cosine in sorted(scores, key=_nearest)[:k]}

    async def _worded(self, text: str, groups: Sequence[CorpusGroup], k: int) -> tuple[dict[Place, float], int]:
        """Return the lexical results of all groups, and the manifest change that the lexical index had reached.

        The search is repeated until all groups agree on that change.
        """
        while True:
            results = await asyncio.gather(
                *(self.read_pool.run(self.lexical.search, text, group, k) for group in groups)
            )
            if len({followed for _, followed in results}) == 1:
                return {place: score for scores, _ in results for place, score in scores.items()}, results[0][1]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as it is put to the vectors of one corpus."""

    embedder: str
    trust: float
    vector: Vectors

    def compare(self, vector: Vectors) -> float:
        return find_model(self.embedder).scale(float(vector @ self.vector))


def _join_candidates(
    near: Mapping[PassageRef, float],
    worded: Mapping[Place, float],
    versions: Sequence[PackedVersion],
    preferred: frozenset[str],
) -> Candidates:
    by_number = {version.number: version for version in versions}
    listed: dict[str, tuple[Passage, Document]] = {}
    dense, lexical = dict[str, float](), dict[str, float]()
    for (number, position), score in worded.items():
        version = by_number.get(number)
        if version and position < len(version.body):
            passage = version.body[position]
            lexical[passage.id] = score
            listed[passage.id] = passage, version.document
    by_name = {(version.document.corpus, version.document.key): version for version in versions}
    for ref, cosine in near.items():
        named = by_name.get((ref.corpus, ref.document))
        if named and (one := named.body.find(ref.id)):
            dense[ref.id] = cosine
            listed[ref.id] = one, named.document
    return Candidates(dense, lexical, listed, preferred, len(dense) + len(lexical))


def _nearest(item: tuple[PassageRef, float]) -> tuple[float, str]:
    return -item[1], item[0].id
