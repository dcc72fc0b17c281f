"""Advice as the lines that go into `footnote.toml`. Pure.

A stage's settings stand in one inline table, so what is set already stands there again, and new beside it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from bot.doctoring.advice.facts import Advice
from pipeline.llm.settings import StageSettings


def lines(advice: Iterable[Advice], stages: Mapping[str, StageSettings]) -> tuple[str, ...]:
    """Return the lines that follow all advice, table by table.

    Args:
        advice: With changes of `TABLE.key`, or of `model.stages.STAGE.key`.
        stages: What stages have of their own already.
    """
    tables: dict[str, dict[str, Any]] = {}
    for name, value in (change for one in advice for change in one.changes.items()):
        table, _, key = name.partition(".")
        place = tables.setdefault(table, {})
        path = key.split(".")
        if path[0] == "stages":
            place.setdefault("stages", _own(stages)).setdefault(path[1], {})[path[2]] = value
        else:
            place[key] = value
    return tuple(line for table, values in tables.items() for line in _table(table, values))


def _own(stages: Mapping[str, StageSettings]) -> dict[str, dict[str, Any]]:
    every = {stage: asdict(own) for stage, own in stages.items()}
    plain = {stage: {key: value for key, value in own.items() if value is not None} for stage, own in every.items()}
    return {stage: own for stage, own in plain.items() if own}


def _table(name: str, values: Mapping[str, Any]) -> Iterable[str]:
    yield f"[{name}]"
    for key, value in values.items():
        yield f"{key} = {_written(value)}"


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_written(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
