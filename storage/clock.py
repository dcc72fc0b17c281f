"""The type of the clocks that components take as an argument, and this machine's clock."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

Clock = Callable[[], datetime]
utc_now: Clock = partial(datetime.now, UTC)
