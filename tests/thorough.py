"""Whether there is time for everything: `make thorough` tries all that `make test` tries a part of."""

import os

THOROUGH = bool(os.environ.get("FOOTNOTE_THOROUGH"))
EXAMPLES = 200 if THOROUGH else 30
"""Of each property that does not say how many it needs."""
