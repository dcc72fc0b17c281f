"""The conversations: questions over a handbook, with what the model takes to be true, of which a part is false. Pure.

Of a question that is answered, the model knows the sentence that answers it, and the same with another number; of one
that is not, it makes something up.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluation.posing import Posed
from evaluation.sets import handbooks

OTHER = 7
"""By so much a number is changed."""
_NUMBER = re.compile(r"(?<![\d.,])\d{1,4}(?![\d.,]*\d)")
_MADE_UP = "The number of the thing that is asked for is 4711."


@dataclass(frozen=True, slots=True)
class Known:
    """A conversation, and what the model claims by itself: true statements, and false ones."""

    posed: Posed
    true: tuple[str, ...]
    false: tuple[str, ...]


def conversations(questions: Sequence[Posed], sentences: Iterable[str], count: int) -> tuple[Known, ...]:
    """Return at most `count` conversations, a fifth of them about what nothing answers.

    `sentences` are all those of the documents.
    """
    every = tuple(sentences)
    known = [one for posed in questions if posed.answers and (one := _known(posed, every))]
    unknown = [Known(posed, (), (_MADE_UP,)) for posed in questions if not posed.answers]
    vain = unknown[: count // 5]
    return (*known[: count - len(vain)], *vain)


def _known(posed: Posed, sentences: Sequence[str]) -> Known | None:
    told = (text for text in sentences if any(handbooks.stands(strings, text) for strings in posed.answers))
    true = next((text for text in told if _NUMBER.search(text)), None)
    return Known(posed, (true,), (_NUMBER.sub(_changed, true, count=1),)) if true else None


def _changed(match: re.Match[str]) -> str:
    return str(int(match[0]) + OTHER)
