"""The replies of stages 6 and 7 as they arrive: sentences with the numbers of the notes they cite. Pure.

`citing` tells sentences and marks apart; this decides whether a reply is a draft at all. Sentences are held back until
one of them cites something, so that a reply without any mark can be asked for once more before a word of it is said.
"""

from pipeline.citing import Marked, Splitter
from pipeline.errors import UnreadableReply

NOTHING = "NOTHING"
"""What a model replies where no note helps."""


class DraftSplitter:
    """Cuts a draft over `count` notes into sentences; none at all where it says that no note helps."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._begin()

    def _begin(self) -> None:
        self._splitter = Splitter(self._count)
        self._held: list[Marked] = []
        self._cites = False

    def feed(self, piece: str) -> tuple[Marked, ...]:
        """Take the next stretch; return the sentences that are certain, once one of them cites a note."""
        return self._released(self._splitter.feed(piece))

    def close(self) -> tuple[Marked, ...]:
        """Return what is left, and be ready for another reply.

        Raises:
            UnreadableReply: no sentence of the reply cites a note, and it does not say that none helps.
        """
        released = self._released(self._splitter.close())
        held, cites = self._held, self._cites
        self._begin()
        if not cites and not any(_is_nothing(sentence) for sentence in held):
            raise UnreadableReply("no sentence has the number of a note in brackets behind it, such as [1]")
        return released

    def _released(self, sentences: tuple[Marked, ...]) -> tuple[Marked, ...]:
        self._cites = self._cites or any(sentence.numbers for sentence in sentences)
        self._held += sentences
        if not self._cites:
            return ()
        released = tuple(sentence for sentence in self._held if not _is_nothing(sentence))
        self._held = []
        return released


def _is_nothing(sentence: Marked) -> bool:
    return sentence.text.strip(" .!*\"'") == NOTHING
