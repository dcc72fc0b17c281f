"""What an operator can set, as typed and frozen values with their defaults. Reading them is `settings_reading`.

Each key does something; the starter file that `footnote init` writes explains each in a line.
"""

from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StringConstraints

from bot.settings_of.desk import BudgetSettings, ChannelValues, DeskSettings, all_fit
from bot.settings_of.discord import DiscordSettings
from bot.settings_of.model import ModelValues
from bot.settings_of.serving import HttpSettings, LogSettings, ScheduleSettings
from bot.settings_of.slack import SlackSettings
from bot.settings_of.sources import OneSource, SourceSettings
from bot.values import FullPath, Values, web_address
from pipeline.kit import Limits
from pipeline.model import Budget

FILE_NAME = Path("footnote.toml")
CORPUS_NAME = r"[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,58}[a-zA-Z0-9])?"
CORPUS_NAME_RULE = "1 to 60 letters, digits, dots, dashes or underscores, with a letter or digit at both ends"
READER = r"\*|(slack|discord):[^/\s]+/[^/\s]+"
READER_RULE = '"*", "slack:TEAM/CHANNEL-OR-USER" or "discord:SERVER/CHANNEL-OR-USER"'


class SettingsError(Exception):
    """The settings cannot be used. `str()` is one plain line that says where; `hint` says what to do."""

    kind = "settings"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def _known_timezone(name: str) -> str:
    zone(name)
    return name


def _database_address(url: str) -> str:
    if url and not url.startswith("postgresql"):
        raise ValueError('must be empty (SQLite in home) or begin with "postgresql://"')
    return url


def _all_different(corpora: "tuple[CorpusSettings, ...]") -> "tuple[CorpusSettings, ...]":
    names = [corpus.name for corpus in corpora]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"has two entries named {twice[0]!r}, and names must differ")
    return corpora


class LimitSettings(BudgetSettings):
    """How much one turn may use, and all of them together."""

    seconds: float = Field(default=Limits().seconds, gt=0, le=3600)
    calls: int = Field(default=Budget().calls, ge=1)
    tokens: int = Field(default=Budget().tokens, ge=1)
    passages: int = Field(default=Limits().passages, ge=1, le=100)
    sentences: int = Field(default=Limits().sentences, ge=1, le=20)
    turns: int = Field(default=Limits().turns, ge=1, le=100)
    looked_up: int = Field(default=Limits().looked_up, ge=1, le=100)
    evidence: int = Field(default=Limits().evidence, ge=1, le=100)
    claims: int = Field(default=Limits().claims, ge=0, le=100)
    refine: bool = Limits().refine

    @property
    def budget(self) -> Budget:
        """What a turn may ask of a model."""
        return Budget(self.calls, self.tokens, self.seconds)

    def kit(self, *, student: bool) -> Limits:
        """What a system is told of them."""
        return Limits(**self.model_dump(exclude={"calls", "tokens", *BudgetSettings.model_fields}), student=student)


class SupportSettings(Values):
    """How sure the local check must be that passages say a sentence."""

    strictness: Literal["", "loose", "normal", "strict"] = ""
    """Empty: normal for answers, strict where somebody asks whether a claim is true."""
    names: tuple[str, ...] = ()
    """Names that every page may be taken to speak of, such as the company's own."""


class EmbeddingSettings(Values):
    """Which embedding function turns text into vectors, and its options."""

    function: str = Field(default="minilm", min_length=1)
    options: dict[str, Any] = Field(default_factory=dict)


class ChromaSettings(Values):
    """Where the vectors are: embedded in the home when `url` is empty."""

    url: Annotated[str, AfterValidator(web_address)] = ""


class CorpusSettings(Values):
    """A named collection of documents, who may read it, and where it comes from."""

    name: Annotated[str, StringConstraints(pattern=f"^{CORPUS_NAME}$")]
    readers: tuple[Annotated[str, StringConstraints(pattern=f"^({READER})$")], ...] = ()
    """Empty means nobody but the terminal."""
    source: OneSource | None = None


class RankingSettings(Values):
    """How passages of several corpora are ranked among each other."""

    own_first: float = Field(default=2.5, ge=0, le=10)
    """How far the team's own passages are put before those of works of reference; 0 ranks all alike."""


class Settings(Values):
    """Everything that can be set."""

    timezone: Annotated[str, AfterValidator(_known_timezone)] = "UTC"
    home: FullPath = Path(".footnote")
    database: Annotated[str, AfterValidator(_database_address), Field(repr=False)] = ""
    system: str = ""
    """Empty: by what is configured."""
    model: ModelValues = ModelValues()
    limits: LimitSettings = LimitSettings()
    support: SupportSettings = SupportSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    chroma: ChromaSettings = ChromaSettings()
    ranking: RankingSettings = RankingSettings()
    desk: DeskSettings = DeskSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    slack: SlackSettings = SlackSettings()
    discord: DiscordSettings = DiscordSettings()
    corpus: Annotated[tuple[CorpusSettings, ...], AfterValidator(_all_different)] = ()
    channel: Annotated[tuple[ChannelValues, ...], AfterValidator(all_fit)] = ()
    """Channels in which something is different; checked after the corpora, which they name."""

    @property
    def zone(self) -> tzinfo:
        """The time zone that dates are told in, and that rules days and nights."""
        return zone(self.timezone)

    @property
    def sources(self) -> dict[str, SourceSettings]:
        """The corpora that have a source, with it."""
        return {corpus.name: corpus.source for corpus in self.corpus if corpus.source}

    @property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """Who may read each corpus that is set, by its name."""
        return {corpus.name: corpus.readers for corpus in self.corpus}


def zone(name: str) -> tzinfo:
    """Return a time zone by its name, such as `Europe/Berlin`. Raises `ValueError` when there is none of that name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError(f'{name!r} is no time zone; write one like "Europe/Berlin" or "UTC"') from error
