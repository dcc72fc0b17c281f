"""Parse a judge's replies: grades with their reasoning, and whether passages answer a question. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.errors import UnreadableReply
from pipeline.replies.reply_format import (
    BOOLEAN,
    ReplyFormat,
    find_labelled,
    get_field,
    integer_schema,
    object_schema,
    string_schema,
)

SCALES: Mapping[str, tuple[int, int]] = {
    "relevant": (1, 5),
    "informational": (1, 5),
    "natural": (1, 5),
    "non_repetitive": (1, 5),
    "temporally_correct": (0, 1),
}
"""The lowest and highest grade of each scale, by the name of its prompt template."""
MAX_REASONING = 1_000  # characters that are stored
_SCORE = re.compile(r"\W*(\d{1,3})(?:\s*(?:/|of|out of)\s*(\d{1,3}))?\b")
_YES = re.compile(r"\W*(yes|true)\b", re.IGNORECASE)
_NO = re.compile(r"\W*(no|false)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Grade:
    score: int
    reasoning: str


def grade_format(scale: str) -> ReplyFormat[Grade]:
    """Return the reply format of a grade. A number outside of the scale counts as unreadable."""
    lowest, highest = SCALES[scale]

    def build(score: int, reasoning: str) -> Grade:
        if not lowest <= score <= highest:
            raise UnreadableReply(f"the score is {score}, and it goes from {lowest} to {highest}")
        return Grade(score, reasoning[:MAX_REASONING])

    def from_text(text: str) -> Grade:
        match = _SCORE.match(find_labelled(text, "score", "grade", "rating") or "")
        if not match:
            raise UnreadableReply("the line “Score: number” is missing")
        if match[2] and int(match[2]) != highest:
            raise UnreadableReply(f"the score is out of {match[2]}, and it goes from {lowest} to {highest}")
        return build(int(match[1]), find_labelled(text, "reasoning") or "")

    def from_json(found: Any) -> Grade:
        return build(get_field(found, "score", int), get_field(found, "reasoning", str))

    schema = object_schema(reasoning=string_schema(MAX_REASONING), score=integer_schema(lowest, highest))
    return ReplyFormat(schema, from_json=from_json, from_text=from_text)


def _parse_answered(text: str) -> bool:
    decision = find_labelled(text, "answered") or ""
    if _YES.match(decision):
        return True
    if _NO.match(decision):
        return False
    raise UnreadableReply("the line “Answered: yes” or “Answered: no” is missing")


ANSWERED: ReplyFormat[bool] = ReplyFormat(
    object_schema(reasoning=string_schema(MAX_REASONING), answered=BOOLEAN),
    from_json=lambda found: bool(get_field(found, "answered", bool)),
    from_text=_parse_answered,
)
