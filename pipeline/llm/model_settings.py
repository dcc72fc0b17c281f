"""Settings of a model and its server, as plain values. Reading them from files is the bot's work."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from storage.language.lazy_pattern import lazy_compile

Structured = Literal["auto", "schema", "json", "text"]
"""How structured replies are requested: by a schema if the server supports it; always by a schema; as any JSON object,
with the schema in the prompt; in the text format."""

SharedBeginning = Literal["auto", "always", "never"]
"""Whether all calls of a turn begin alike: if that is known to cost less, always, or never."""
CacheKind = Literal["none", "beginnings", "marks"]
"""The cached text that a server charges less for: none known, any earlier beginning, or text up to a mark."""

SHARING_STAGES = frozenset({"summarise", "verify"})
"""Stages whose calls can share a beginning and may ask for a schema, which servers put before it."""
OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-5.4-mini"  # the default if only OPENAI_API_KEY is set: cheap enough for a dozen calls a turn

_OPENAI = "api.openai.com"
_FAMILY = lazy_compile(r"(?i)(?<![a-z0-9])gpt-(\d+)(?:\.(\d+))?(?![\do])")
_CHEAP_SINCE = (5, 0)  # earlier models charge a quarter or half for cached text: a longer beginning seldom pays
_MARKED_SINCE = (5, 6)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A text that is never printed; read it by `value`."""

    value: str = ""

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return "Secret('...')" if self.value else "Secret('')"


@dataclass(frozen=True, slots=True)
class Price:
    """Prices per million tokens, in the currency of the operator's choice."""

    prompt: float
    completion: float
    cached: float | None = None  # for tokens in the server's cache; None: the same as `prompt`


@dataclass(frozen=True, slots=True)
class StageSettings:
    name: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    structured: Structured | None = None


@dataclass(frozen=True, slots=True)
class StagePlan:
    stage: str
    model: str
    temperature: float | None
    max_tokens: int | None
    reasoning_effort: str
    structured: Structured


@dataclass(frozen=True, slots=True)
class ModelSettings:
    name: str = ""  # the model; on Azure, the deployment
    base_url: str = field(default="", repr=False)
    """The server's URL; empty for OpenAI's own. On Azure, the resource's endpoint."""
    api_key: Secret = Secret()
    azure_ad_token: Secret = Secret()
    api: Literal["openai", "azure"] = "openai"
    api_version: str = ""  # for Azure
    stages: Mapping[str, StageSettings] = field(default_factory=lambda: MappingProxyType({}))
    structured: Structured = "auto"
    temperature: float | None = 0.0  # None leaves it to the server
    top_p: float | None = None  # the nucleus to sample from; None leaves it to the server
    reasoning_effort: str = ""
    thinks: bool | None = None
    """Whether the model reasons before it replies; None: detected by its name and replies."""
    thinking_tokens: int = 4_096  # maximum length of the reasoning, apart from the reply
    context_tokens: int = 0  # the context window; 0: unknown
    max_concurrency: int = 8
    timeout_seconds: float = 60.0  # for one try of a call, from its request to its last byte
    first_token_seconds: float = 60.0  # until the first byte of a streamed reply
    idle_seconds: float = 20.0  # between bytes of a reply
    retries: int = 4
    prices: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))
    shared_beginning: SharedBeginning = "auto"

    def plan(self, stage: str) -> StagePlan:
        own = self.stages.get(stage, StageSettings())
        structured = own.structured or self.structured
        return StagePlan(
            stage,
            own.name or self.name,
            self.temperature if own.temperature is None else own.temperature,
            own.max_tokens,
            self.reasoning_effort if own.reasoning_effort is None else own.reasoning_effort,
            "text" if structured == "auto" and stage in SHARING_STAGES and self.shares_beginning else structured,
        )

    @property
    def at_openai(self) -> bool:
        """Whether OpenAI's own service replies, or Azure's."""
        return self.api == "azure" or self.server == _OPENAI

    @property
    def cache_kind(self) -> CacheKind:
        return find_cache_kind(self.api, self.server, self.name)

    @property
    def shares_beginning(self) -> bool:
        """Whether all calls of a turn begin alike."""
        return self.shared_beginning == "always" or (
            self.shared_beginning == "auto" and self.cache_kind == "beginnings"
        )

    @property
    def server(self) -> str:
        """The server's host and port. The rest of the address can contain a key and must not be shown."""
        return urlsplit(self.base_url or OPENAI_URL).netloc.rpartition("@")[2]

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be printed."""
        return tuple(secret.value for secret in (self.api_key, self.azure_ad_token) if secret)

    @property
    def unspoken(self) -> tuple[str, ...]:
        """Texts that must not be printed even in part: the secrets, and credentials in the address."""
        return (*self.secrets, *_address_secrets(self.base_url))


def _address_secrets(address: str) -> tuple[str, ...]:
    """Return the credentials in an address, in the forms in which a server may echo them."""
    user, _, password = urlsplit(address).netloc.rpartition("@")[0].partition(":")
    if not password:
        return tuple(sorted({user, unquote(user)} - {""}))
    pairs = ((user, password), (unquote(user), unquote(password)))
    spoken = {form for name, word in pairs for form in (word, f"{name}:{word}")}
    coded = {b64encode(f"{name}:{word}".encode()).decode() for name, word in pairs}
    return tuple(sorted(spoken | coded))


def find_cache_kind(api: str, server: str, model: str) -> CacheKind:
    """Return which cached text a model's server charges less for, by its address and the model's name.

    OpenAI and Azure cache prompts of 1,024 tokens and more. Models before GPT-5.6 reuse the beginning of any earlier
    call, in steps of 128 tokens. Later ones reuse only text up to a mark in the call, and storing it costs a quarter
    more.
    """
    family = _FAMILY.search(model)
    if not family or not (api == "azure" or server == _OPENAI):
        return "none"
    version = (int(family[1]), int(family[2] or 0))
    return "marks" if version >= _MARKED_SINCE else "beginnings" if version >= _CHEAP_SINCE else "none"


def fill_from_environment(settings: ModelSettings, environ: Mapping[str, str]) -> ModelSettings:
    """Fill unset settings from the environment variables that OpenAI's own client reads."""
    if settings.api == "azure":
        names = {"base_url": "AZURE_OPENAI_ENDPOINT", "api_version": "OPENAI_API_VERSION"}
        secrets = {"api_key": "AZURE_OPENAI_API_KEY", "azure_ad_token": "AZURE_OPENAI_AD_TOKEN"}
    else:
        names = {"base_url": "OPENAI_BASE_URL"}
        secrets = {"api_key": "OPENAI_API_KEY"}
    found: dict[str, Any] = {
        key: environ.get(variable, "").strip() for key, variable in {"name": "OPENAI_MODEL", **names}.items()
    }
    if not settings.secrets:
        found |= {key: Secret(environ.get(variable, "").strip()) for key, variable in secrets.items()}
    open_ones = {key: value for key, value in found.items() if value and not getattr(settings, key)}
    return _default_model_name(replace(settings, **open_ones))


def _default_model_name(settings: ModelSettings) -> ModelSettings:
    """Fill in OpenAI's own model if only a key is set; models of other servers are unknown."""
    at_openai = settings.api == "openai" and settings.base_url.rstrip("/") in {"", OPENAI_URL}
    return replace(settings, name=OPENAI_MODEL) if at_openai and settings.secrets and not settings.name else settings
