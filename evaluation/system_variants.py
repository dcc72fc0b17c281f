"""Parse the names of systems in evaluations. A name may contain limits, or mean the model alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from bot.app import App
from bot.settings.tables.settings_tables import LimitSettings
from evaluation import EvaluationError
from pipeline.kit import Effort
from pipeline.systems import SYSTEMS, find_system

MODEL_ALONE = "model-alone"


class _OwnLimits(LimitSettings):
    effort: Effort = "normal"


@dataclass(frozen=True, slots=True)
class SystemVariant:
    """A system with its own limits."""

    label: str  # such as `augmenter:policy=always`
    name: str
    limits: Mapping[str, str]

    @property
    def asks_model(self) -> bool:
        return self.name == MODEL_ALONE or bool(SYSTEMS[self.name].calls)

    def apply(self, app: App) -> App:
        if not self.limits:
            return app
        usual = app.settings.limits.model_dump() | {"effort": app.settings.effort}
        own = _OwnLimits.model_validate(usual | dict(self.limits))
        changed = {"limits": LimitSettings(**own.model_dump(exclude={"effort"})), "effort": own.effort}
        return replace(app, settings_source=app.settings.model_copy(update=changed))


def parse_variant(label: str) -> SystemVariant:
    """Parse a system's name with limits, such as `in-context:examples=5,effort=quick`.

    Raises `EvaluationError` for an unknown limit or an invalid value, and `UnknownSystem`.
    """
    name, _, listed = label.partition(":")
    limits = {key: value for key, _, value in (part.partition("=") for part in listed.split(",") if part)}
    unknown = next((limit for limit in limits if limit not in _OwnLimits.model_fields), None)
    if unknown is not None:
        raise EvaluationError(
            f"{label!r} names the unknown limit {unknown!r}.",
            hint=f"The limits are {', '.join(_OwnLimits.model_fields)}.",
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
    return SystemVariant(label, name, limits)
