"""Parse the names of systems in evaluations. A name may contain limits and a search, or mean the model alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from pydantic import ValidationError

from bot.app import App
from bot.settings.tables.settings_tables import LimitSettings
from evaluation import EvaluationError
from pipeline.kit import Effort
from pipeline.systems import SYSTEMS, find_system
from storage.passages import CANDIDATES, PassageStore
from storage.search.candidate_search import rank_key
from storage.types import Hit

MODEL_ALONE = "model-alone"
HYBRID, RANDOM, GOLD = "hybrid", "random", "gold"
SEARCHES = (RANDOM, "dense", "lexical", HYBRID, GOLD)
"""The searches of variants. `random` returns passages of documents that were drawn, `gold` first those known as right.

These alone would not do: systems weigh a question's words by how many of the passages have them.
"""


class _OwnLimits(LimitSettings):
    effort: Effort = "normal"


@dataclass(frozen=True, slots=True)
class SystemVariant:
    """A system with its own limits."""

    label: str  # such as `augmenter:policy=always`
    name: str
    limits: Mapping[str, str]
    search: str = HYBRID

    @property
    def asks_model(self) -> bool:
        return self.name == MODEL_ALONE or bool(SYSTEMS[self.name].calls)

    def apply(self, app: App, drawn: Sequence[str] = (), gold: Collection[str] = ()) -> App:
        """Return the app with the variant's limits and search. `drawn` and `gold` are the keys of documents.

        Raises `EvaluationError` if the search needs them, and there are none.
        """
        if self.search in {RANDOM, GOLD} and not drawn:
            raise EvaluationError(
                f"{self.label!r} needs a set with known passages.",
                hint="Use it with `footnote evaluate answers --set`.",
            )
        if self.search != HYBRID:
            app = replace(app, passages=open_search(app, self.search, drawn, gold if self.search == GOLD else ()))
        if not self.limits:
            return app
        usual = app.settings.limits.model_dump() | {"effort": app.settings.effort}
        own = _OwnLimits.model_validate(usual | dict(self.limits))
        changed = {"limits": LimitSettings(**own.model_dump(exclude={"effort"})), "effort": own.effort}
        return replace(app, settings_source=app.settings.model_copy(update=changed))


@dataclass(frozen=True)
class VariantSearch(PassageStore):
    """A store that one of its indexes searches, or that returns the passages of given documents, nearest first."""

    by: str = HYBRID
    drawn: Sequence[str] = ()
    gold: frozenset[str] = frozenset()

    async def search(self, text: str, corpora: Sequence[str], k: int) -> tuple[Hit, ...]:
        if self.by in {RANDOM, GOLD}:
            keys, trust = {*self.drawn, *self.gold}, self.embedder.knows(text)
            stored = [version for name in corpora for version in (await self.manifest.stored(name, keys)).values()]
            pairs = [(passage, version.document) for version in stored for passage in version.passages]
            cosines = await self.compare(text, [passage.text for passage, _ in pairs])
            hits = [
                Hit(passage, document, cosine + (document.key in self.gold), cosine, 0.0, trust)
                for (passage, document), cosine in zip(pairs, cosines, strict=True)
            ]
            return tuple(sorted(hits, key=lambda hit: -hit.score)[:k])
        candidates = await self.candidates(text, corpora, max(CANDIDATES, k))
        scores = candidates.dense if self.by == "dense" else candidates.lexical
        return tuple(candidates.make_hit(key, score) for key, score in sorted(scores.items(), key=rank_key)[:k])


def open_search(app: App, by: str, drawn: Sequence[str] = (), gold: Collection[str] = ()) -> VariantSearch:
    parts = {part.name: getattr(app.passages, part.name) for part in fields(PassageStore) if part.init}
    return VariantSearch(**parts, by=by, drawn=drawn, gold=frozenset(gold))


def parse_variant(label: str) -> SystemVariant:
    """Parse a system's name with limits and a search, such as `in-context:examples=5,effort=quick,search=dense`.

    Raises `EvaluationError` for an unknown limit or an invalid value, and `UnknownSystem`.
    """
    name, _, listed = label.partition(":")
    limits = {key: value for key, _, value in (part.partition("=") for part in listed.split(",") if part)}
    if (search := limits.pop("search", HYBRID)) not in SEARCHES:
        raise EvaluationError(f"{label!r} has an unknown search.", hint=f"The searches are {', '.join(SEARCHES)}.")
    unknown = next((limit for limit in limits if limit not in _OwnLimits.model_fields), None)
    if unknown is not None:
        raise EvaluationError(
            f"{label!r} names the unknown limit {unknown!r}.",
            hint=f"The limits are search, {', '.join(_OwnLimits.model_fields)}.",
        )
    try:
        _OwnLimits.model_validate(limits)
    except ValidationError as error:
        fault = error.errors()[0]
        key = str(fault["loc"][0]) if fault["loc"] else listed
        raise EvaluationError(
            f"{label!r} has the value {limits.get(key, '')!r} for {key}: {fault['msg']}.",
            hint=f"Write another, such as {key}={getattr(_OwnLimits(), key, '')}.",
        ) from error
    if name != MODEL_ALONE:
        find_system(name)
    return SystemVariant(label, name, limits, search)
