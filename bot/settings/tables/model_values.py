"""Define a model and its server, for answers and for evaluations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from bot.settings.tables.field_types import EMPTY_IS_NONE, LIVE, SettingsTable, WebAddress
from pipeline.llm.model_settings import (
    ModelSettings,
    Price,
    Secret,
    SharedBeginning,
    StageSettings,
    Structured,
    fill_from_environment,
)
from pipeline.stages import STAGES

_MODEL_DEFAULTS = ModelSettings()
_OURS = {"student", "slow_seconds"}  # not passed to the adapter
_Temperature = Annotated[float | None, Field(ge=0, le=2), EMPTY_IS_NONE]


class PriceValues(SettingsTable):
    """The price of a million tokens of a model."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class StageValues(SettingsTable):
    """A stage's own settings. If a value is None, the model's own setting applies."""

    name: str | None = None
    temperature: _Temperature = None
    max_tokens: int | None = Field(default=None, ge=1)
    reasoning_effort: str | None = None
    structured: Structured | None = None


def _expand_stage_name(stage: object) -> object:
    """Expand a stage given as text, the name of its model, to a table."""
    return {"name": stage} if isinstance(stage, str) else stage


def _validate_stages(stages: dict[str, StageValues]) -> dict[str, StageValues]:
    unknown = next((name for name in stages if name not in STAGES), None)
    if unknown is not None:
        raise ValueError(f"has no stage {unknown!r}; there are: {', '.join(STAGES)}")
    return stages


_Stage = Annotated[StageValues, BeforeValidator(_expand_stage_name)]


class ModelValues(SettingsTable):
    """A model and its server."""

    name: str = ""
    base_url: WebAddress = Field(default="", repr=False)
    api_key: SecretStr = SecretStr("")
    azure_ad_token: SecretStr = SecretStr("")
    api: Literal["openai", "azure"] = _MODEL_DEFAULTS.api
    api_version: str = ""
    stages: Annotated[dict[str, _Stage], AfterValidator(_validate_stages)] = Field(default_factory=dict)
    student: bool = False  # whether it was distilled for our calls: see `pipeline.kit.Limits`
    structured: Structured = _MODEL_DEFAULTS.structured
    shared_beginning: SharedBeginning = _MODEL_DEFAULTS.shared_beginning
    temperature: _Temperature = _MODEL_DEFAULTS.temperature
    reasoning_effort: str = ""
    thinks: Annotated[bool | None, EMPTY_IS_NONE] = None
    thinking_tokens: int = Field(default=_MODEL_DEFAULTS.thinking_tokens, ge=0)
    context_tokens: int = Field(default=_MODEL_DEFAULTS.context_tokens, ge=0)
    max_concurrency: int = Field(default=_MODEL_DEFAULTS.max_concurrency, ge=1, le=1_000)
    timeout_seconds: float = Field(default=_MODEL_DEFAULTS.timeout_seconds, gt=0, le=3_600)
    first_token_seconds: float = Field(default=_MODEL_DEFAULTS.first_token_seconds, gt=0, le=3_600)
    idle_seconds: float = Field(default=_MODEL_DEFAULTS.idle_seconds, gt=0, le=3_600)
    retries: int = Field(default=_MODEL_DEFAULTS.retries, ge=0, le=20)
    prices: dict[str, PriceValues] = Field(default_factory=dict)
    slow_seconds: Annotated[float, LIVE] = Field(default=6.0, ge=0, le=3_600)
    """From how many seconds a typical call is slow, so that effort is lowered; 0: never."""

    @property
    def configured(self) -> bool:
        """Whether a model is configured: a key, an address, or Azure is set."""
        return bool(self.api_key or self.azure_ad_token or self.base_url or self.api == "azure")

    @property
    def names(self) -> str:
        """The names of the models, as the record shows them."""
        own = {name: stage.name for name, stage in self.stages.items() if stage.name not in {None, self.name}}
        return ", ".join(filter(None, (self.name, *(f"{model} ({name})" for name, model in own.items()))))

    def plain(self) -> ModelSettings:
        """Return these values as the settings of the model adapter."""
        given: dict[str, Any] = {name: value for name, value in self if name not in _OURS}
        secrets = {name: Secret(given[name].get_secret_value()) for name in ("api_key", "azure_ad_token")}
        stages = {name: StageSettings(**dict(stage)) for name, stage in self.stages.items()}
        prices = {name: Price(**dict(price)) for name, price in self.prices.items()}
        return ModelSettings(**given | secrets | {"stages": stages, "prices": prices})

    def completed(self, environ: Mapping[str, str]) -> "ModelValues":
        """Fill in missing values from the variables of OpenAI's own client."""
        filled = fill_from_environment(self.plain(), environ)
        secrets = {name: SecretStr(getattr(filled, name).value) for name in ("api_key", "azure_ad_token")}
        plain = {name: getattr(filled, name) for name in ("name", "base_url", "api_version")}
        return self.model_copy(update=plain | secrets)


class EvaluationModel(SettingsTable):
    """A model that only an evaluation uses. Empty values are taken from `[model]`."""

    name: str = ""
    base_url: WebAddress = Field(default="", repr=False)
    api_key: SecretStr = SecretStr("")  # of that server alone: no other key is sent there
    temperature: _Temperature = 0.0
    top_p: Annotated[float | None, Field(gt=0, le=1), EMPTY_IS_NONE] = None

    def over(self, model: ModelValues) -> ModelValues:
        """Return the model to use, at its own server if it has one, otherwise at the server of `[model]`."""
        own: dict[str, Any] = {"stages": {}, "temperature": self.temperature, "name": self.name or model.name}
        if self.base_url:
            server = {"base_url": self.base_url, "api_key": self.api_key, "azure_ad_token": SecretStr("")}
            own |= {**server, "api": _MODEL_DEFAULTS.api, "api_version": ""}
        return model.model_copy(update=own)


class EvaluationSettings(SettingsTable):
    """The models that play the user and the judge in `footnote evaluate dialogues`."""

    simulator: EvaluationModel = EvaluationModel(temperature=1.0, top_p=0.5)
    judge: EvaluationModel = EvaluationModel()
    ask_above: float = Field(default=5.0, ge=0)
    """A run with a higher expected cost, in the currency of the prices, starts only after confirmation."""
