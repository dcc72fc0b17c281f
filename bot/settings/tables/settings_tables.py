"""Define every setting, as typed and frozen tables with their defaults.

Each key does something; the starter file that `footnote init` writes explains each in a line.
"""

from datetime import UTC, time, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    AliasChoices,
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
    require,
    validate_web_address,
)
from bot.settings.tables.mcp_settings import McpSettings
from bot.settings.tables.model_values import EvaluationSettings, ModelValues
from bot.settings.tables.pages_settings import PagesSettings
from bot.settings.tables.record_settings import DistillationSettings, RecordSettings
from bot.settings.tables.search_engine_settings import SearchEngineSettings
from bot.settings.tables.source_registry import AnySource
from bot.settings.tables.source_settings import SourceSettings
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.types import EngineName
from pipeline.kit import Effort, Limits, Policy, Utility, WrittenQuery
from pipeline.llm.model import Budget
from storage.language.lazy_pattern import lazy_compile
from storage.types import KEPT_VECTORS


class DeskSettings(SettingsTable):
    """How many questions are answered at once, and how long things may wait."""

    at_once: Annotated[int, LIVE] = Field(default=8, ge=1, le=1_000)
    per_channel: Annotated[int, LIVE] = Field(default=4, ge=1, le=1_000)
    patience_seconds: Annotated[float, LIVE] = Field(default=20, gt=0, le=3_600)
    """Who waits longer is told the length of the queue."""
    grace_seconds: Annotated[float, RESTART] = Field(default=20, ge=0, le=3_600)
    """How long answers in progress may take when the server stops; the rest waits for its next start."""


class BudgetSettings(SettingsTable):
    """How much may be asked and used by day and month, in the time zone; 0 sets no limit."""

    questions_per_user: int = Field(default=0, ge=0)  # a day
    questions_per_channel: int = Field(default=0, ge=0)  # a day
    tokens_per_day: int = Field(default=0, ge=0)
    tokens_per_month: int = Field(default=0, ge=0)
    cost_per_month: float = Field(default=0, ge=0)  # in the currency of `[model] prices`


class ChannelValues(SettingsTable):
    """What is different in one channel."""

    id: ChannelId
    corpora: Annotated[tuple[str, ...] | None, EMPTY_IS_NONE, SCOPE] = None
    """Those of the readable ones that are searched here; None is all of them, and an empty list is none."""
    system: str = ""
    effort: Annotated[Effort | None, EMPTY_IS_NONE] = None  # None is that of all channels
    tone: Annotated[Tone | None, EMPTY_IS_NONE] = None  # None is that of all channels
    answer: Literal["mention", "every"] = "mention"
    ephemeral: bool = False  # whether only the asker sees answers
    threads: Literal["never", "long"] = "never"
    """Whether a second question gets a thread, where the platform does not answer in threads anyway."""
    ask: tuple[PersonId, ...] = ()  # whom "Ask a person" mentions
    paused: bool = False  # whether nothing is answered here for now

    @field_validator("ask")
    @classmethod
    def _of_its_platform(cls, people: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        here = platform_of(info.data.get("id", ""))
        stranger = next((person for person in people if here and platform_of(person) != here), "")
        if stranger:
            raise ValueError(f"names {stranger}, who is not on {here} as the channel is")
        return people


def _validate_channels(channels: tuple[ChannelValues, ...], info: ValidationInfo) -> tuple[ChannelValues, ...]:
    """Refuse channels that are there twice or name a corpus that is not."""
    ids = [channel.id for channel in channels]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ValueError(f"has two entries for {twice[0]}, and there is one for each channel")
    engine = info.data.get("search_engine")
    known = {*(corpus.name for corpus in info.data.get("corpus", ())), *filter(None, [engine and engine.corpus])}
    for channel in channels if "corpus" in info.data else ():
        if unknown := sorted(set(channel.corpora or ()) - known):
            there = f"there are: {', '.join(sorted(known))}" if known else "there is none yet"
            raise ValueError(f"of {channel.id} names the corpus {unknown[0]!r}, which no [[corpus]] has; {there}")
    return channels


_TIME = lazy_compile(r"(([01]\d|2[0-3]):[0-5]\d)?")


class HttpSettings(SettingsTable):
    """Where the server listens: its health, and what platforms send over HTTP."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8710, ge=0, le=65_535)  # 0 takes any that is free
    metrics: bool = True  # whether /metrics is served to Prometheus
    traces: Annotated[str, AfterValidator(validate_web_address)] = ""  # of OpenTelemetry's collector; empty for none


class LogSettings(SettingsTable):
    """What a server logs, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"  # the lowest level that is logged


class IngestSettings(SettingsTable):
    """Where documents are read and embedded, and by which programs of this machine."""

    engine: EngineName = "local"
    ray_address: str = ""  # of a Ray cluster; empty: RAY_ADDRESS, or one that is started on this machine
    ocr: bool = False  # whether tesseract reads the pages of PDFs that are pictures
    ocr_languages: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z][\w/-]*$")], ...] = Field(
        default=NO_PROGRAMS.ocr_languages, min_length=1
    )
    """By tesseract's names: `footnote doctor` tells those that are installed."""
    libreoffice: bool = False  # whether LibreOffice opens .doc, .ppt, .rtf

    @property
    def programs(self) -> ReaderPrograms:
        return ReaderPrograms(self.ocr, self.ocr_languages, self.libreoffice)


class ScheduleSettings(SettingsTable):
    """When every source is refreshed."""

    nightly: Annotated[str, require(_TIME.fullmatch, 'must be a time of day like "03:00", or empty')] = ""
    """The time of day in the time zone of the settings; empty: never."""
    admin_channel: Annotated[str, AfterValidator(lambda text: text and channel_id(text))] = ""
    """The channel that is told what failed at night, and what to do; empty: only the server's log."""
    heartbeat: bool = False  # whether a line is posted there each day, also without a failure

    @property
    def at(self) -> time | None:
        """The time of day at which it happens; None where it never does."""
        return time.fromisoformat(self.nightly) if self.nightly else None


FILE_NAME = Path("footnote.toml")
CORPUS_NAME = r"[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,58}[a-zA-Z0-9])?"
CORPUS_NAME_RULE = "1 to 60 letters, digits, dots, dashes or underscores, with a letter or digit at both ends"


_DATABASE = require(
    lambda url: not url or url.startswith("postgresql"), 'must be empty (SQLite in home) or begin with "postgresql://"'
)


def _validate_corpora(corpora: "tuple[CorpusSettings, ...]") -> "tuple[CorpusSettings, ...]":
    names = [corpus.name for corpus in corpora]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"has two entries named {twice[0]!r}, and names must differ")
    return corpora


class LimitSettings(BudgetSettings):
    """How much one turn may use, and all turns together."""

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
    utility: Utility = Limits().utility
    examples: int = Field(default=Limits().examples, ge=0, le=16)
    example_relevance: float = Field(default=Limits().example_relevance, ge=0, le=1)
    example_notes: Literal["text", "triples"] = Limits().example_notes

    @property
    def budget(self) -> Budget:
        return Budget(self.calls, self.tokens, self.seconds)

    def kit(self, *, student: bool) -> Limits:
        """Return the limits that a system gets."""
        return Limits(**self.model_dump(exclude={"calls", "tokens", *BudgetSettings.model_fields}), student=student)


class SupportSettings(SettingsTable):
    """How strict the local check is."""

    strictness: Literal["", "loose", "normal", "strict"] = ""
    """Empty: normal for answers, strict where somebody asks whether a claim is true."""
    names: tuple[str, ...] = ()  # names that every page may be about, such as the company's


class EmbeddingSettings(SettingsTable):
    """Which embedding function turns text into vectors, and its options."""

    function: str = Field(default="minilm", min_length=1)
    options: dict[str, Any] = Field(default_factory=dict)
    bits: Annotated[int, require(lambda bits: bits in {8, 32}, "must be 8 or 32")] = 8  # of minilm
    kept: int = Field(default=KEPT_VECTORS, ge=0)
    """How many vectors of lazy corpora are kept."""


class ChromaSettings(SettingsTable):
    """Where the vectors are: embedded in the home when `url` is empty."""

    url: Annotated[str, AfterValidator(validate_web_address)] = ""
    tenant: str = ""
    database: str = ""
    token: SecretStr = SecretStr("")
    scheme: Literal["x-chroma-token", "bearer"] = "x-chroma-token"
    ca_file: Annotated[FullPath | None, EMPTY_IS_NONE] = None


DenseChoice = Literal["", "eager", "lazy", "off"]
"""When a corpus is embedded; empty: as it is, or for a new one by its size."""


class CorpusSettings(SettingsTable):
    """A named collection of documents, who may read it, and where it comes from."""

    name: Annotated[str, StringConstraints(pattern=f"^{CORPUS_NAME}$")]
    visible_to: Annotated[tuple[ReaderId, ...], SCOPE] = Field(
        default=(), validation_alias=AliasChoices("visible_to", "readers")
    )
    """Empty means nobody but the terminal."""
    dense: DenseChoice = ""
    owner: PersonId | Literal[""] = ""  # who is named to admins beside what its documents leave unanswered
    source: AnySource | None = None


class RankingSettings(SettingsTable):
    """How passages of several corpora are ranked among each other."""

    own_first: float = Field(default=2.5, ge=0, le=10)
    """How far the team's own passages rank above works of reference; 0 ranks all alike."""


def load_time_zone(name: str) -> tzinfo:
    """Return a time zone by its name, such as `Europe/Berlin`. Raises `ValueError` when there is none of that name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError(f'{name!r} is not a time zone; write one like "Europe/Berlin" or "UTC"') from error


class OwnSettings(SettingsTable):
    """All settings but those of platforms."""

    timezone: Annotated[str, AfterValidator(lambda name: load_time_zone(name) and name), RESTART] = "UTC"
    home: Annotated[FullPath, RESTART] = Path(".footnote")
    database: Annotated[str, _DATABASE, Field(repr=False), RESTART] = ""
    system: Annotated[str, LIVE] = ""  # empty: by what is configured
    effort: Annotated[Effort, LIVE] = "normal"
    tone: Annotated[Tone, LIVE] = ""
    welcome: Annotated[bool, LIVE] = True  # whether the bot introduces itself in a channel that it is invited to
    model: Annotated[ModelValues, RESTART] = ModelValues()
    limits: Annotated[LimitSettings, LIVE] = LimitSettings()
    evaluation: Annotated[EvaluationSettings, LIVE] = EvaluationSettings()
    support: Annotated[SupportSettings, RESTART] = SupportSettings()
    embedding: Annotated[EmbeddingSettings, RESTART] = EmbeddingSettings()
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
        """The time zone that dates are told in, and that rules days and nights."""
        return load_time_zone(self.timezone)

    @property
    def sources(self) -> dict[str, SourceSettings]:
        """The sources, by corpus."""
        return {corpus.name: corpus.source for corpus in self.corpus if corpus.source}

    def find_dense(self, corpus: str) -> DenseChoice:
        return next((one.dense for one in self.corpus if one.name == corpus), "")

    @property
    def visible_to(self) -> dict[str, tuple[str, ...]]:
        """Who may read each configured corpus, that of the search engine among them."""
        web = {self.search_engine.corpus: self.search_engine.visible_to} if self.search_engine.corpus else {}
        return {corpus.name: corpus.visible_to for corpus in self.corpus} | web

    @property
    def readers(self) -> frozenset[str]:
        """All whom any corpus names."""
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
