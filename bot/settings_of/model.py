"""The `[model]` table of the settings: a language model, its server, and how patiently it is asked.

What the keys mean to the model's adapter stands in `pipeline.llm.settings`, which knows no files; the defaults are its.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from bot.values import EMPTY_IS_NONE, Values, web_address
from pipeline.llm.settings import ModelSettings, Price, Secret, StageSettings, Structured, with_environment
from pipeline.stages import STAGES

_DEFAULT = ModelSettings()
_Share = Annotated[float | None, Field(ge=0, le=2), EMPTY_IS_NONE]


class PriceValues(Values):
    """What a million tokens of a model cost."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class StageValues(Values):
    """What one stage asks differently."""

    name: str | None = None
    temperature: _Share = None
    max_tokens: int | None = Field(default=None, ge=1)
    reasoning_effort: str | None = None
    structured: Structured | None = None


def _named(stage: object) -> object:
    """Take a stage that is only text as the name of its model."""
    return {"name": stage} if isinstance(stage, str) else stage


def _all_known(stages: dict[str, StageValues]) -> dict[str, StageValues]:
    unknown = next((name for name in stages if name not in STAGES), None)
    if unknown is not None:
        raise ValueError(f"has no stage {unknown!r}; there are: {', '.join(STAGES)}")
    return stages


_Stage = Annotated[StageValues, BeforeValidator(_named)]


class ModelValues(Values):
    """A model and its server."""

    name: str = ""
    base_url: Annotated[str, AfterValidator(web_address)] = Field(default="", repr=False)
    api_key: SecretStr = SecretStr("")
    azure_ad_token: SecretStr = SecretStr("")
    api: Literal["openai", "azure"] = _DEFAULT.api
    api_version: str = ""
    stages: Annotated[dict[str, _Stage], AfterValidator(_all_known)] = Field(default_factory=dict)
    student: bool = False
    """Whether it was distilled for our calls: see `pipeline.kit.Limits`."""
    structured: Structured = _DEFAULT.structured
    temperature: _Share = _DEFAULT.temperature
    reasoning_effort: str = ""
    thinks: Annotated[bool | None, EMPTY_IS_NONE] = None
    thinking_tokens: int = Field(default=_DEFAULT.thinking_tokens, ge=0)
    context_tokens: int = Field(default=_DEFAULT.context_tokens, ge=0)
    max_concurrency: int = Field(default=_DEFAULT.max_concurrency, ge=1, le=1_000)
    timeout_seconds: float = Field(default=_DEFAULT.timeout_seconds, gt=0, le=3_600)
    first_token_seconds: float = Field(default=_DEFAULT.first_token_seconds, gt=0, le=3_600)
    idle_seconds: float = Field(default=_DEFAULT.idle_seconds, gt=0, le=3_600)
    retries: int = Field(default=_DEFAULT.retries, ge=0, le=20)
    prices: dict[str, PriceValues] = Field(default_factory=dict)

    @property
    def configured(self) -> bool:
        """Whether there is to be a model to ask: somebody gave a key, or an address, or named Azure."""
        return bool(self.api_key or self.azure_ad_token or self.base_url or self.api == "azure")

    @property
    def names(self) -> str:
        """The models that may be asked, as the record names them; empty where none is configured."""
        if not self.configured:
            return ""
        own = {name: stage.name for name, stage in self.stages.items() if stage.name not in {None, self.name}}
        return ", ".join(filter(None, (self.name, *(f"{model} ({name})" for name, model in own.items()))))

    def plain(self) -> ModelSettings:
        """Return the same as the adapter takes it."""
        given: dict[str, Any] = {name: value for name, value in self if name != "student"}
        secrets = {name: Secret(given[name].get_secret_value()) for name in ("api_key", "azure_ad_token")}
        stages = {name: StageSettings(**dict(stage)) for name, stage in self.stages.items()}
        prices = {name: Price(**dict(price)) for name, price in self.prices.items()}
        return ModelSettings(**given | secrets | {"stages": stages, "prices": prices})

    def completed(self, environ: Mapping[str, str]) -> "ModelValues":
        """Return it with what it leaves open filled in from the variables that OpenAI's own client reads."""
        found = with_environment(self.plain(), environ)
        secrets = {name: SecretStr(getattr(found, name).value) for name in ("api_key", "azure_ad_token")}
        plain = {name: getattr(found, name) for name in ("name", "base_url", "api_version")}
        return self.model_copy(update=plain | secrets)
