"""Set up a run: its manifest, and the models that answer, play the user, and judge."""

import asyncio
import platform
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.answering.turn_record import digest_files, digest_settings
from bot.app import App
from bot.settings.tables.model_values import EvaluationModel, ModelValues
from bot.settings.tables.settings_tables import Settings
from evaluation import EvaluationError
from evaluation.dialogues.dialogue_run import OpenTurnModel, plan_dialogues
from evaluation.dialogues.dialogue_types import CorpusState, Dialogue, RunManifest, Topic, TopicKind
from evaluation.dialogues.models.call_cache import CachingModel
from evaluation.dialogues.models.stand_ins import (
    JUDGE_STAND_IN,
    RULE_JUDGE,
    SCRIPTED_USER,
    STAND_INS,
    USER_STAND_IN,
    open_rule_judge,
    open_scripted_user,
    open_stand_in,
)
from evaluation.dialogues.topics import choose_topics, read_topics, survey_corpus
from evaluation.system_variants import MODEL_ALONE, parse_variant
from pipeline.llm.model import LLM
from pipeline.llm.model_client import LazyModel
from pipeline.systems import SYSTEMS
from storage.passages import PassageStore
from storage.types import Hit

STAND_IN = "stand-in"  # the option's value for no model
_TOPIC_DEVIATION = (
    "topics: well known by other titles and length, not by page views; recent by the date of a text, not by the "
    "number of edits; none was removed by hand"
)
_COMMON_DEVIATIONS = (
    "corpora: those that are indexed here, by this project's own search; not Wikipedia of April 2023 by ColBERT",
    "claims: verdicts by the judge, and by people for a sample if asked; in WikiChat’s paper three people label each",
    "prompts: this project's own, for the user, the judge and every stage",
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options from the command line. A run can be continued only with the same options."""

    systems: Sequence[str] = ()
    every: bool = False
    alone: bool = False
    models: Sequence[str] = ()
    user: str = ""
    judge: str = ""
    corpora: Sequence[str] = ()
    topics: Path | None = None
    count: int = 20
    turns: int = 5
    seed: int = 1

    def describe(self) -> Mapping[str, Any]:
        """Return the options as JSON values, for the manifest."""
        listed = {name: [*getattr(self, name)] for name in ("systems", "models", "corpora")}
        values = asdict(self) | listed | {"topics": str(self.topics or "")}
        return values | {"all": values.pop("every")}


def refuse_other_options(manifest: RunManifest, options: RunOptions, path: Path) -> None:
    """Raise `EvaluationError` if a run was started with other options."""
    requested = options.describe()
    other = next((name for name, value in requested.items() if manifest.options.get(name, value) != value), None)
    if other is not None:
        raise EvaluationError(
            f"{path} has a run with {other} {manifest.options[other]!r}, not {requested[other]!r}.",
            hint="Use the options that it was started with, or name another folder with --out.",
        )


def refuse_other_dialogues(manifest: RunManifest, held: Sequence[Dialogue], path: Path) -> None:
    """Raise `EvaluationError` if the folder has dialogues of another run."""
    planned = {dialogue.id: dialogue for dialogue in plan_dialogues(manifest)}
    other = next((dialogue for dialogue in held if replace(dialogue, turns=()) != planned.get(dialogue.id)), None)
    if other is not None:
        raise EvaluationError(
            f"{path} has a dialogue {other.id} about {other.topic.title!r}, which is not of the run in its run.json.",
            hint="Restore the right run.json, or start another run: --out FOLDER.",
        )


async def build_manifest(app: App, options: RunOptions) -> RunManifest:
    """Choose the topics of a run, and describe all its inputs. Raises `EvaluationError` and `StorageError`."""
    settings = app.settings
    systems = choose_systems(options, app.system)
    models = tuple(options.models) or ((settings.model.name,) if settings.model.configured else ("scripted",))
    for name in models:
        if name not in STAND_INS and not settings.model.configured:
            raise EvaluationError(
                f"No model is configured, so {name!r} cannot be asked.",
                hint=f"Set [model], or use a stand-in: --model {' or '.join(STAND_INS)}.",
            )
    states, topics = await _choose_topics(app, options)
    simulator = name_model(settings, settings.evaluation.simulator, options.user) or SCRIPTED_USER
    judge = name_model(settings, settings.evaluation.judge, options.judge) or RULE_JUDGE
    stand_ins = [STAND_INS[name] for name in models if name in STAND_INS and _any_asks(systems)]
    stand_ins += [USER_STAND_IN] * (simulator == SCRIPTED_USER) + [JUDGE_STAND_IN] * (judge == RULE_JUDGE)
    chosen = () if options.topics else (_TOPIC_DEVIATION,)
    versions = list_versions(app)
    manifest = RunManifest(
        id=secrets.token_hex(4),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=versions["commit"],
        version=versions["version"],
        python=platform.python_version(),
        prompts=versions["prompts"],
        settings=digest_settings(settings),
        systems=systems,
        models=models,
        simulator=simulator,
        judge=judge,
        corpora=states,
        topics=topics,
        turns=options.turns,
        seed=options.seed,
        today=f"{datetime.now(settings.zone):%Y-%m-%d}",
        stand_ins=tuple(stand_ins),
        deviations=(*chosen, *_COMMON_DEVIATIONS),
        versions=versions,
        options=options.describe(),
    )
    return replace(manifest, dialogues=len(plan_dialogues(manifest)))


def list_versions(app: App) -> Mapping[str, str]:
    """Return the versions of all inputs except models and documents, by the names of the inputs."""
    played = digest_files("evaluation.dialogues.prompts", ".j2", ".json")
    return {
        **app.versions,
        "settings": digest_settings(app.settings),
        "prompts of user and judge": played,
        "commit": find_commit(),
    }


def list_changes(manifest: RunManifest, app: App) -> tuple[str, ...]:
    """Return the names of inputs that have changed since the run started."""
    now = list_versions(app)
    return tuple(name for name, version in manifest.versions.items() if now.get(name) != version)


def choose_systems(options: RunOptions, default: str) -> tuple[str, ...]:
    named = [*options.systems, *(SYSTEMS if options.every else ())] or [default]
    labels = dict.fromkeys((*named, *((MODEL_ALONE,) if options.alone else ())))
    return tuple(parse_variant(label).label for label in labels)


def _any_asks(systems: Sequence[str]) -> bool:
    return any(parse_variant(label).asks_model for label in systems)


async def _choose_topics(app: App, options: RunOptions) -> tuple[tuple[CorpusState, ...], tuple[Topic, ...]]:
    generations = {corpus.name: corpus.generation for corpus in await app.manifest.catalogue()}
    existing = [corpus for corpus in await app.manifest.corpora() if corpus.documents]
    unknown = set(options.corpora) - {corpus.name for corpus in existing}
    if unknown or not existing:
        names = ", ".join(corpus.name for corpus in existing)
        known = names or "none yet: run `footnote ingest folder PATH --corpus NAME`"
        raise EvaluationError(f"There is no corpus {min(unknown, default='')!r} to ask.", hint=f"There are: {known}.")
    chosen = [corpus for corpus in existing if not options.corpora or corpus.name in options.corpora]
    surveyed = [await survey_corpus(app.manifest, corpus, generations[corpus.name]) for corpus in chosen]
    states, surveys = tuple(state for state, _ in surveyed), [survey for _, survey in surveyed]
    if options.topics:
        return states, await read_topics(options.topics, app.manifest, surveys)
    return states, await choose_topics(app.manifest, surveys, options.count, options.seed)


def count_kinds(topics: Sequence[Topic]) -> str:
    """Describe in words how many topics there are of each kind."""
    counts = {kind: sum(topic.kind is kind for topic in topics) for kind in TopicKind}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def name_model(settings: Settings, own: EvaluationModel, asked: str) -> str:
    """Return the name of the model that plays the user or judges; empty if rules stand in for it."""
    if asked == STAND_IN or not (settings.model.configured or own.base_url):
        return ""
    return asked or own.over(settings.model).name or "model"


@dataclass
class RunModels:
    """The models of a run. Each is opened once, and its replies are cached in the run's folder."""

    app: App
    manifest: RunManifest
    folder: Path
    stack: AsyncExitStack
    _opened: dict[str, LLM] = field(default_factory=dict)

    @property
    def open_turn_model(self) -> OpenTurnModel:
        def open_model(dialogue: Dialogue, user: str) -> LLM:
            # The key has the turn, because a turn that reused another's replies would seem faster than it is.
            turn, name = f"{dialogue.id} {len(dialogue.turns) + 1}", dialogue.model
            if name in STAND_INS:
                return open_stand_in(name, dialogue.topic, user, self.manifest.seed)
            return self._open(self.app.settings.model.model_copy(update={"name": name}), name, turn)

        return open_model

    @property
    def simulator(self) -> LLM:
        if self.manifest.simulator == SCRIPTED_USER:
            return open_scripted_user()
        own = self.app.settings.evaluation.simulator
        return self._open(own.over(self.app.settings.model), self.manifest.simulator, top_p=own.top_p)

    @property
    def judge(self) -> LLM:
        if self.manifest.judge == RULE_JUDGE:
            return open_rule_judge(self.app.supports)
        own = self.app.settings.evaluation.judge
        return self._open(own.over(self.app.settings.model), self.manifest.judge, top_p=own.top_p)

    def _open(self, values: ModelValues, name: str, turn: str = "", top_p: float | None = None) -> CachingModel:
        settings = replace(values.plain(), name=name if name != "model" else values.name, top_p=top_p)
        parts = (settings.server, settings.name, settings.temperature, settings.reasoning_effort, settings.structured)
        key = " ".join(map(str, (*parts, *filter(None, [top_p]), self.manifest.seed)))
        if key not in self._opened:
            self._opened[key] = LazyModel(settings, self.stack)
        return CachingModel(self._opened[key], self.folder, asked=f"{key} {turn}")


@dataclass(frozen=True)
class OrderedSearch(PassageStore):
    """A store that runs searches one at a time, in the order in which they are requested."""

    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def search(self, text: str, corpora: Sequence[str], k: int) -> tuple[Hit, ...]:
        async with self._turn:
            return await super().search(text, corpora, k)


def order_searches(app: App, manifest: RunManifest) -> App:
    """Return the app of a run. If rules replace all models, searches are ordered, so that the run is repeatable."""
    if not set(manifest.models) <= {*STAND_INS}:
        return app
    own = {part.name: getattr(app.passages, part.name) for part in fields(app.passages) if part.init}
    return replace(app, passages=OrderedSearch(**own))


def find_commit() -> str:
    """Return the commit of this checkout, marked if files differ from it; empty if git is missing."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],  # noqa: S607 - any git will do
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
