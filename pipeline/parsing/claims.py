"""Stage 4's reply: the claims of a reply, self-contained, each with the time it is about. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.errors import UnreadableReply
from pipeline.forms import Form
from pipeline.parsing.query import Time, time_of
from pipeline.parsing.reading import STRING, field, is_nothing, items, lines, list_schema, object_schema, plain

LONGEST = 600
"""Characters of a claim; more is no single statement."""
_TIME = r"(?:time|year)?\s*[:=]?\s*[\"“]?(recent|none|\d{4})[\"”]?"
_BEHIND = re.compile(rf"\s*(?:\||[(\[])\s*{_TIME}\s*[)\]]?\s*\.?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TimedClaim:
    """A statement of the model's own, and the time that its evidence should be of."""

    text: str
    time: Time = None


def _of_line(line: str) -> TimedClaim:
    behind = _BEHIND.search(line)
    return TimedClaim(line[: behind.start()].strip(), time_of(behind[1])) if behind else TimedClaim(line)


def _from_text(text: str) -> tuple[TimedClaim, ...]:
    if text.strip() and is_nothing(text):
        return ()
    found = _kept(_of_line(line) for line in items(text) or filter(_BEHIND.search, lines(text)))
    if not found and not any(map(is_nothing, lines(text))):
        raise UnreadableReply("there is no list of claims in it, and no “Nothing” either")
    return found


def _kept(claims: Iterable[TimedClaim]) -> tuple[TimedClaim, ...]:
    """Return the claims that say something, each once."""
    kept = {claim.text: claim for claim in claims if not is_nothing(claim.text) and len(claim.text) <= LONGEST}
    return tuple(kept.values())


CLAIMS: Form[tuple[TimedClaim, ...]] = Form(
    object_schema(claims=list_schema(object_schema(text=STRING, time=STRING))),
    from_json=lambda found: _kept(
        TimedClaim(plain(field(one, "text", str)), time_of(str(field(one, "time", (str, int)))))
        for one in field(found, "claims", list)
    ),
    from_text=_from_text,
)
