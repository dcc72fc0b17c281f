"""Stage 4's reply: claims, self-contained, each with the time it is about; whole or as they arrive. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.errors import UnreadableReply
from pipeline.forms import Form
from pipeline.parsing.query import Time, time_of
from pipeline.parsing.reading import STRING, field, is_nothing, items, lines, list_schema, object_schema, plain

LONGEST = 600
"""Characters of a claim; more is no single statement."""
MOST = 8_000
"""Characters of a streamed list that are read, in whole lines: each line makes those before it be read again."""
_TIME = r"(?:time|year)?\s*[:=]?\s*[\"“]?(recent|none|\d{4})[\"”]?"
_NO_LIST = "there is no list of claims in it, and no “Nothing” either"
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
    found = _listed(text)
    if not found and not _says_nothing(text):
        raise UnreadableReply(_NO_LIST)
    return found


def _listed(text: str) -> tuple[TimedClaim, ...]:
    return _kept(_of_line(line) for line in items(text) or filter(_BEHIND.search, lines(text)))


def _says_nothing(text: str) -> bool:
    return any(map(is_nothing, lines(text)))


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


class ClaimSplitter:
    """Cuts a list of claims into claims as it arrives, each as soon as its line has ended in its time.

    A claim without a time is certain where the next one begins, since its line may run on.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._full = False
        self._given: set[str] = set()

    def feed(self, piece: str) -> tuple[TimedClaim, ...]:
        """Take the next stretch; return the claims that are certain now and were not before."""
        if self._full:
            return ()
        self._text += piece
        if len(self._text) > MOST:
            self._full, self._text = True, self._text[:MOST].rpartition("\n")[0]
            return self._new(_listed(self._text))
        if "\n" not in piece:
            return ()
        ended = self._text[: self._text.rindex("\n")]
        last = ended.rstrip().rsplit("\n", 1)[-1]
        found = _listed(ended)
        return self._new(found if _BEHIND.search(last) else found[:-1])

    def close(self) -> tuple[TimedClaim, ...]:
        """Return what is left, and be ready for another reply.

        Raises:
            UnreadableReply: there is no claim in the reply, and it does not say that there is none.
        """
        found = self._new(_listed(self._text))
        nothing = not self._given and not _says_nothing(self._text)
        self._begin()
        if nothing:
            raise UnreadableReply(_NO_LIST)
        return found

    def _new(self, found: Iterable[TimedClaim]) -> tuple[TimedClaim, ...]:
        new = tuple(claim for claim in found if claim.text not in self._given)
        self._given.update(claim.text for claim in new)
        return new
