"""Since when something may still be unread on a platform, kept in a file: so a restart in the midst loses nothing."""

import asyncio
import logging
import math
from pathlib import Path

log = logging.getLogger(__name__)


class Gaps:
    """The moments, in seconds since 1970, since which not all was read yet. What cannot be kept is told in the log."""

    def __init__(self, home: Path, platform: str) -> None:
        """Take the folder of the file that keeps the earliest of them; there is no file while all is read."""
        self.file, self._open = home / f"{platform}-unread-since", list[float]()

    async def earliest(self) -> float | None:
        """Return since when an earlier run left something unread; None where it left nothing."""
        return await asyncio.to_thread(self._kept)

    async def begun(self, since: float) -> None:
        """Note that what was written since then is to be read."""
        self._open.append(since)
        await asyncio.to_thread(self._keep)

    async def closed(self, since: float) -> None:
        """Note that it is read."""
        self._open.remove(since)
        await asyncio.to_thread(self._keep)

    def _kept(self) -> float | None:
        try:
            since = float(self.file.read_text("ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("it cannot be told what was left unread", extra={"cause": str(error)})
            return None
        return since if math.isfinite(since) else None

    def _keep(self) -> None:
        try:
            if self._open:
                self.file.write_text(f"{min(self._open):.6f}", "ascii")
            else:
                self.file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("what is unread cannot be noted", extra={"cause": str(error)})
