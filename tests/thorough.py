"""Set how many examples are tried: all in `make thorough`, a part in `make test`, fewer in `make quick`."""

import os

import pytest

QUICK, THOROUGH = (os.environ.get("SUITE") == name for name in ("quick", "thorough"))
TEAM = THOROUGH or os.environ.get("SUITE") == "team"
"""Whether the storage tests also run on the servers of a team; see `tests.team_servers`."""
EXAMPLES = 200 if THOROUGH else 5 if QUICK else 20
"""The number of examples of a property that sets no number itself."""


def sample(most: int) -> int:
    """Return how many examples to try of a property for which `make thorough` tries `most`."""
    return most if THOROUGH else max(10, most // 3)


thorough_only = pytest.mark.skipif(not THOROUGH, reason="only make thorough runs it")
"""Marks a test for which `make test` runs a smaller one."""
