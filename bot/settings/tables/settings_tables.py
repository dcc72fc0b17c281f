"""Define every setting, as typed and frozen tables with their defaults.

Each key does something; the starter file that `footnote init` writes explains each in a line.
"""

from datetime import time, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    create_model,
    field_validator,
)

from bot.settings.platform_registry import ChannelId, PersonId, ReaderId, channel_id, load_platforms, platform_of
from bot.settings.tables.field_types import (
    EMPTY_IS_NONE,
    LIVE,
    RESTART,
    SCOPE,
    FullPath,
    SettingsTable,
    Tone,
    WebAddress,
    load_time_zone,
    require,
)
from bot.settings.tables.model_values import EvaluationSettings, ModelValues
from bot.settings.tables.network_settings import HttpSettings, McpSettings, PagesSettings
from bot.settings.tables.record_settings import DistillationSettings, RecordSettings
from bot.settings.tables.search_settings import RankingSettings, SearchEngineSettings
from bot.settings.tables.source_registry import AnySource
from bot.settings.tables.source_settings import SourceSettings
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.types import EngineName
from pipeline.kit import Effort, Limits, Policy, Utility, WrittenQuery
from pipeline.llm.model import Budget
from storage.errors import StorageError
from storage.indexes.chroma_connection import ChromaLocation, ChromaServer
from storage.language.lazy_pattern import lazy_compile
from storage.types import KEPT_VECTORS


class DeskSettings(SettingsTable):
    """How many questions are answered at once, and how long they may wait."""

    at_once: Annotated[int, LIVE] = Field(default=8, ge=1, le=1_000)
    per_channel: Annotated[int, LIVE] = Field(default=4, ge=1, le=1_000)
    patience_seconds: Annotated[float, LIVE] = Field(default=20.0, gt=0, le=3_600)
    """An asker who waits longer is shown the length of the queue."""
    grace_seconds: Annotated[float, RESTART] = Field(default=20.0, ge=0, le=3_600)
    """How long answers in progress may take when the server stops; the rest waits for its next start."""


class BudgetSettings(SettingsTable):
    """Limits of questions, tokens and cost per day and month in the settings' time zone; 0 means no limit."""

    questions_per_user: int = Field(default=0, ge=0)  # a day
    questions_per_channel: int = Field(default=0, ge=0)  # a day
    tokens_per_day: int = Field(default=0, ge=0)
    tokens_per_month: int = Field(default=0, ge=0)
    cost_per_month: float = Field(default=0.0, ge=0)  # in the currency of `[model] prices`


_TWO_SYSTEMS = 'must name two different systems, such as ["wikichat", "retrieve-then-generate"], or none'


class ChannelValues(SettingsTable):
    id: ChannelId
    corpora: Annotated[tuple[str, ...] | None, EMPTY_IS_NONE, SCOPE] = None
    """The readable corpora that are searched here; None is all of them, and an empty list is none."""
    system: str = ""
    study: Annotated[
        tuple[str, ...], require(lambda pair: len({*filter(None, pair)}) == len(pair) in {0, 2}, _TWO_SYSTEMS)
    ] = ()
    """Two systems that answer by turns, to be rated blindly, once an admin of the channel agrees."""
    effort: Annotated[Effort | None, EMPTY_IS_NONE] = None  # None: the general one
    tone: Annotated[Tone | None, EMPTY_IS_NONE] = None  # None: the general one
    answer: Literal["mention", "every"] = "mention"
    ephemeral: bool = False  # whether only the asker sees answers
    threads: Literal["never", "long"] = "never"
    """Whether a second question gets a thread, on platforms that do not always answer in threads."""
    ask: tuple[PersonId, ...] = ()  # the people that "Ask a person" mentions
    paused: bool = False  # whether answering is suspended here

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that it names."""
        return (*filter(None, [self.system]), *self.study)

    @field_validator("ask")
    @classmethod
    def _of_its_platform(cls, people: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        here = platform_of(info.data.get("id", ""))
        stranger = next((person for person in people if here and platform_of(person) != here), "")
        if stranger:
            raise ValueError(f"names {stranger}, who is not on {here}, where the channel is")
        return people


def _validate_channels(channels: tuple[ChannelValues, ...], info: ValidationInfo) -> tuple[ChannelValues, ...]:
    """Refuse two tables for one channel, and unknown corpora."""
    ids = [channel.id for channel in channels]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise ValueError(f"has two entries for {twice[0]}; each channel has one at most")
    engine = info.data.get("search_engine")
    known = {*(corpus.name for corpus in info.data.get("corpus", ())), *filter(None, [engine and engine.corpus])}
    for channel in channels if "corpus" in info.data else ():
        if unknown := sorted(set(channel.corpora or ()) - known):
            names = f"there are: {', '.join(sorted(known))}" if known else "there is none yet"
            raise ValueError(f"of {channel.id} names the corpus {unknown[0]!r}, which no [[corpus]] has; {names}")
    return channels


_TIME = lazy_compile(r"(([01]\d|2[0-3]):[0-5]\d)?")


class LogSettings(SettingsTable):
    """What a server logs to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"  # the lowest level that is logged


class IngestSettings(SettingsTable):
    """Where documents are read and embedded, and with which programs of this machine."""

    engine: EngineName = "local"
    ray_address: str = ""  # of a Ray cluster; empty: RAY_ADDRESS, or one that is started on this machine
    ocr: bool = False  # whether tesseract reads scanned pages of PDFs
    ocr_languages: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z][\w/-]*$")], ...] = Field(
        default=NO_PROGRAMS.ocr_languages, min_length=1
    )
    """Tesseract's names of languages; `footnote doctor` reports missing ones."""
    libreoffice: bool = False  # whether LibreOffice opens .doc, .ppt, .rtf

    @property
    def programs(self) -> ReaderPrograms:
        return ReaderPrograms(self.ocr, self.ocr_languages, self.libreoffice)


class ScheduleSettings(SettingsTable):
    """When every source is refreshed."""

    nightly: Annotated[str, require(_TIME.fullmatch, 'must be a time of day like "03:00", or empty')] = ""
    """The time of day in the time zone of the settings; empty: never."""
    admin_channel: Annotated[str, AfterValidator(lambda text: text and channel_id(text))] = ""
    """The channel that gets reports of failed nightly refreshes; empty: only the server's log."""
    heartbeat: bool = False  # whether it gets a line each day, also without a failure

    @property
    def at(self) -> time | None:
        """The time of day of the nightly refresh; None for never."""
        return time.fromisoformat(self.nightly) if self.nightly else None


FILE_NAME = Path("footnote.toml")
_CORPUS_NAME = lazy_compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,58}[a-zA-Z0-9])?")


def validate_corpus_name(name: str) -> str:
    """Return the name of a corpus unchanged. Raises `ValueError`, whose message continues a sentence."""
    if not _CORPUS_NAME.fullmatch(name):
        rule = "1 to 60 letters, digits, dots, dashes or underscores, with a letter or digit at both ends"
        raise ValueError(f"must be {rule}")
    return name


_DATABASE = require(
    lambda url: not url or url.startswith("postgresql"), 'must be empty (SQLite in home) or begin with "postgresql://"'
)


def _validate_corpora(corpora: "tuple[CorpusSettings, ...]") -> "tuple[CorpusSettings, ...]":
    names = [corpus.name for corpus in corpora]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"has two entries named {twice[0]!r}, and names must differ")
    return corpora


class LimitSettings(BudgetSettings):
    """Limits of one turn, and of all turns together."""

    seconds: float = Field(default=Limits().seconds, gt=0, le=3600)
    calls: int = Field(default=Budget().calls, ge=1)
    tokens: int = Field(default=Budget().tokens, ge=1)
    passages: int = Field(default=Limits().passages, ge=1, le=100)
    sentences: int = Field(default=Limits().sentences, ge=1, le=20)
    turns: int = Field(default=Limits().turns, ge=1, le=100)
    looked_up: int = Field(default=Limits().looked_up, ge=1, le=100)
    evidence: int = Field(default=Limits().evidence, ge=1, le=100)
    query: WrittenQuery = Limits().query
    pages: int = Field(default=Limits().pages, ge=1, le=10)
    claims: int = Field(default=Limits().claims, ge=0, le=100)
    refine: bool = Limits().refine
    rounds: int = Field(default=Limits().rounds, ge=1, le=10)
    policy: Policy = Limits().policy
    explore: float = Field(default=Limits().explore, ge=0, lt=0.5)
    utility: Utility = Limits().utility
    examples: int = Field(default=Limits().examples, ge=0, le=16)
    example_relevance: float = Field(default=Limits().example_relevance, ge=0, le=1)
    example_notes: Literal["text", "triples"] = Limits().example_notes

    @property
    def budget(self) -> Budget:
        return Budget(self.calls, self.tokens, self.seconds)

    def kit(self, *, student: bool) -> Limits:
        """Return the limits that apply to a system in one turn."""
        return Limits(**self.model_dump(exclude={"calls", "tokens", *BudgetSettings.model_fields}), student=student)


class SupportSettings(SettingsTable):
    """How strict the local check is."""

    strictness: Literal["", "loose", "normal", "strict"] = ""
    """Empty: normal for answers, strict for fact-checks."""
    names: tuple[str, ...] = ()  # names that any page may leave out, such as the company's


class EmbeddingSettings(SettingsTable):
    """Which embedding function turns text into vectors, and its options."""

    function: str = ""  # empty: a model on this machine, chosen for each corpus by its language
    options: dict[str, Any] = Field(default_factory=dict)
    kept: int = Field(default=KEPT_VECTORS, ge=0)
    """How many vectors of lazy corpora are kept."""


_IGNORED = BeforeValidator(
    lambda given: {key: given[key] for key in given if key != "bits"} if isinstance(given, dict) else given
)
"""Earlier releases had `bits`, which is ignored."""


class ChromaSettings(SettingsTable):
    """Where the vectors are: in the home if `url` is empty."""

    url: WebAddress = ""
    tenant: str = ""
    database: str = ""
    token: SecretStr = SecretStr("")
    scheme: Literal["x-chroma-token", "bearer"] = "x-chroma-token"
    ca_file: Annotated[FullPath | None, EMPTY_IS_NONE] = None


DenseChoice = Literal["", "eager", "lazy", "off"]
"""When a corpus is embedded; empty: unchanged, or for a new one by its size."""


class CorpusSettings(SettingsTable):
    """A named collection of documents, with its readers and its source."""

    name: Annotated[str, AfterValidator(validate_corpus_name)]
    visible_to: Annotated[tuple[ReaderId, ...], SCOPE] = Field(
        default=(), validation_alias=AliasChoices("visible_to", "readers")
    )
    """Empty: only the terminal."""
    dense: DenseChoice = ""
    embedder: Literal["", "minilm", "bge", "e5"] = ""  # the model that embeds it; empty: as [embedding] says
    owner: PersonId | Literal[""] = ""  # named to admins next to questions that its documents do not answer
    source: AnySource | None = None


class OwnSettings(SettingsTable):
    """All settings but those of platforms."""

    timezone: Annotated[str, AfterValidator(lambda name: load_time_zone(name) and name), RESTART] = "UTC"
    home: Annotated[FullPath, RESTART] = Field(default=Path(".footnote"), validate_default=True)
    database: Annotated[str, _DATABASE, Field(repr=False), RESTART] = ""
    system: Annotated[str, LIVE] = ""  # empty: depends on the configuration
    effort: Annotated[Effort, LIVE] = "normal"
    tone: Annotated[Tone, LIVE] = ""
    welcome: Annotated[bool, LIVE] = True  # whether the bot introduces itself in a channel that it is invited to
    model: Annotated[ModelValues, RESTART] = ModelValues()
    limits: Annotated[LimitSettings, LIVE] = LimitSettings()
    evaluation: Annotated[EvaluationSettings, LIVE] = EvaluationSettings()
    support: Annotated[SupportSettings, RESTART] = SupportSettings()
    embedding: Annotated[EmbeddingSettings, _IGNORED, RESTART] = EmbeddingSettings()
    chroma: Annotated[ChromaSettings, RESTART] = ChromaSettings()
    ranking: Annotated[RankingSettings, LIVE] = RankingSettings()
    search_engine: SearchEngineSettings = SearchEngineSettings()
    desk: DeskSettings = DeskSettings()
    http: Annotated[HttpSettings, RESTART] = HttpSettings()
    pages: Annotated[PagesSettings, RESTART] = PagesSettings()
    mcp: McpSettings = McpSettings()
    log: Annotated[LogSettings, LIVE] = LogSettings()
    ingest: Annotated[IngestSettings, LIVE] = IngestSettings()
    schedule: Annotated[ScheduleSettings, LIVE] = ScheduleSettings()
    record: Annotated[RecordSettings, LIVE] = Field(default_factory=RecordSettings)
    distillation: Annotated[DistillationSettings, LIVE] = DistillationSettings()
    corpus: Annotated[tuple[CorpusSettings, ...], AfterValidator(_validate_corpora), LIVE] = ()
    channel: Annotated[tuple[ChannelValues, ...], AfterValidator(_validate_channels), LIVE] = ()
    """Validated after the corpora, which channels name."""

    @property
    def zone(self) -> tzinfo:
        """The time zone of dates, days and nightly refreshes."""
        return load_time_zone(self.timezone)

    @property
    def sources(self) -> dict[str, SourceSettings]:
        """The sources, by corpus."""
        return {corpus.name: corpus.source for corpus in self.corpus if corpus.source}

    def find_corpus(self, name: str) -> CorpusSettings:
        """Return the settings of a corpus; the defaults if it has none."""
        return next((corpus for corpus in self.corpus if corpus.name == name), CorpusSettings(name=name))

    @property
    def visible_to(self) -> dict[str, tuple[str, ...]]:
        """The readers of each configured corpus, including the corpus of the search engine."""
        web = {self.search_engine.corpus: self.search_engine.visible_to} if self.search_engine.corpus else {}
        return {corpus.name: corpus.visible_to for corpus in self.corpus} | web

    @property
    def current(self) -> Self:
        """These settings; see `bot.app.SettingsSource`."""
        return self

    @property
    def chroma_location(self) -> ChromaLocation:
        """The location of the vectors: the configured Chroma server, or the folder in the home.

        Raises `StorageError` if several homes share a database, and no Chroma server is configured: then each home's
        folder would lack the vectors that other homes make.
        """
        chroma = self.chroma
        if not chroma.url and self.database:
            hint = "Name a Chroma server for all of them in [chroma] url (`chroma run` starts one), or remove database."
            message = "Several homes share a PostgreSQL database, but the vectors would be in this home."
            raise StorageError(message, hint=hint)
        if not chroma.url:
            return self.home / "chroma"
        token = chroma.token.get_secret_value()
        return ChromaServer(chroma.url, chroma.tenant, chroma.database, token, chroma.scheme, chroma.ca_file)

    @property
    def readers(self) -> frozenset[str]:
        """All readers that any corpus names."""
        return frozenset(reader for visible_to in self.visible_to.values() for reader in visible_to)


if TYPE_CHECKING:

    class Settings(OwnSettings):
        """All settings: `OwnSettings`, and a table for each platform, by its name."""
else:
    Settings = create_model(
        "Settings",
        __base__=OwnSettings,
        **{entry.name: (entry.settings, entry.settings()) for entry in load_platforms().values()},
    )
