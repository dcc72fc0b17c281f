"""The clock that components take as an argument, and the one of this machine."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

Clock = Callable[[], datetime]
utc_now: Clock = partial(datetime.now, UTC)
