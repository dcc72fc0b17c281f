"""Until when each shard has heard everything: what came later was missed where Discord has forgotten its session."""

from collections.abc import Mapping
from typing import Any

from bot.discord.reading import id_of, moment

Json = Mapping[str, Any]


class Heard:
    """The last moment of each shard, in seconds since 1970. One shard knows nothing of what another missed."""

    def __init__(self, since: float | None) -> None:
        """Take until when an earlier run had heard everything; None where there was none."""
        self._before, self._last = since, dict[int, float]()
        self._shards = 1

    def begun(self, shard: tuple[int, int], now: float) -> float | None:
        """Note that a session begins, and return since when its shard missed something; None where it did not.

        Args:
            shard: Which, of how many.
            now: When.
        """
        number, self._shards = shard
        since = self._last.get(number, self._before)
        self._last[number] = now
        return since

    def message(self, message: Json) -> None:
        """Note that a message arrived."""
        number, guild = id_of(message, "id"), id_of(message, "guild_id")
        if not number:
            return
        shard = (int(guild or 0) >> 22) % self._shards
        self._last[shard] = max(self._last.get(shard, 0.0), moment(number).timestamp())


def shard_of(ready: Json) -> tuple[int, int]:
    """Return which shard a session is of, and how many there are; pure."""
    match ready.get("shard"):
        case [int(number), int(shards)] if 0 <= number < shards:
            return number, shards
        case _:
            return 0, 1
