"""What commands do their work with: a home opened by this process, or one that another process serves.

`LocalHome` in `local_home` has it open; `RemoteHome` in `control.client` asks the process that has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bot.refreshing.forgotten import Forgotten
    from bot.settings_of.sources import SourceSettings
    from bot.turns import Answered, Asked
    from ingest.refreshing import Progress, RefreshReport
    from pipeline.types import Event
    from storage.types import CorpusInfo, Hit


class Home(Protocol):
    """What can be asked of a home. Every method raises errors that a person can mend, as `console.Mendable` has them.

    A method that is cancelled stops its work, wherever that is done; a turn's record says so.
    """

    async def answer(self, asked: Asked, tell: Callable[[Event], None]) -> Answered:
        """Answer a question; `tell` hears what happens meanwhile."""
        ...

    async def check(self, asked: Asked, tell: Callable[[Event], None]) -> Answered:
        """Check a claim; `tell` hears what happens meanwhile."""
        ...

    async def search(self, query: str, corpora: Sequence[str], count: int) -> tuple[Hit, ...]:
        """Return the passages of these corpora that fit best, at most so many, best first."""
        ...

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        """Return what is indexed."""
        ...

    async def refresh(
        self,
        corpus: str,
        source: SourceSettings,
        tell: Callable[[Progress], None],
        *,
        confirm_removal: bool = False,
    ) -> RefreshReport:
        """Bring a corpus up to date with its source; `tell` hears how far it has come.

        Documents that are gone in suspicious number are removed only with `confirm_removal`.
        """
        ...

    async def read_one(self, address: str, sources: Mapping[str, SourceSettings]) -> tuple[RefreshReport, ...]:
        """Read in the document of an address, from these sources by corpus; return a report for each corpus of it."""
        ...

    async def forget(self, address: str, corpus: str) -> Forgotten:
        """Forget the document of an address, a key or a title; with an empty `corpus`, in whichever it is."""
        ...
