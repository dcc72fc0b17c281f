"""How much is tried: `make thorough` tries all that `make test` tries a part of, and `make quick` less."""

import os

import pytest

QUICK, THOROUGH = (os.environ.get("SUITE") == name for name in ("quick", "thorough"))
TEAM = THOROUGH or os.environ.get("SUITE") == "team"
"""Whether the storage tests also run on the servers of a team; see `tests.team_servers`."""
EXAMPLES = 200 if THOROUGH else 5 if QUICK else 20
"""Of each property that does not say how many it needs."""


def sample(most: int) -> int:
    """Return how many examples to try now of a property of which `make thorough` tries `most`."""
    return most if THOROUGH else max(10, most // 3)


thorough_only = pytest.mark.skipif(not THOROUGH, reason="make thorough has the time")
"""Marks a test that `make test` replaces with a smaller one."""
