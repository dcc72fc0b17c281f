"""Stage 7's first reply: what is good and bad about a draft, with a score of 0 to 100 for each criterion. Pure."""

import re
from dataclasses import dataclass
from typing import Any

from pipeline.errors import UnreadableReply
from pipeline.forms import Form
from pipeline.parsing.reading import INTEGER, STRING, field, labelled, object_schema

CRITERIA = ("relevant", "natural", "non-repetitive", "temporally correct")
PERFECT = 100
_SCORE = re.compile(r"(?<![\d.])(\d{1,3})(?:\.0)?\s*(?:/|out of)\s*100\b")
_POINT = object_schema(remark=STRING, score=INTEGER)


@dataclass(frozen=True, slots=True)
class Point:
    """What a critic says of a draft by one criterion."""

    criterion: str
    remark: str
    score: int


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a critic says of a draft, by every criterion."""

    points: tuple[Point, ...]

    @property
    def perfect(self) -> bool:
        """Whether there is nothing to make better."""
        return all(point.score >= PERFECT for point in self.points)


def _from_json(found: Any) -> Feedback:
    return Feedback(tuple(_point(name, field(found, _key(name), dict)) for name in CRITERIA))


def _key(criterion: str) -> str:
    return criterion.replace("-", "_").replace(" ", "_")


def _point(name: str, found: Any) -> Point:
    return Point(name, " ".join(field(found, "remark", str).split()), _bounded(field(found, "score", int)))


def _from_text(text: str) -> Feedback:
    return Feedback(tuple(_labelled_point(name, text) for name in CRITERIA))


def _labelled_point(name: str, text: str) -> Point:
    said = labelled(text, name, name.replace("-", " "), name.replace("-", ""))
    scores = list(_SCORE.finditer(said or ""))
    if said is None or not scores:
        raise UnreadableReply(f"the line “{name.capitalize()}: … score/100” is missing")
    return Point(name, said[: scores[-1].start()].strip(), _bounded(int(scores[-1][1])))


def _bounded(score: int) -> int:
    return max(0, min(score, PERFECT))


FEEDBACK: Form[Feedback] = Form(
    object_schema(**{_key(name): _POINT for name in CRITERIA}),
    from_json=_from_json,
    from_text=_from_text,
)
