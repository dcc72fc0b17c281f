"""Whether there is time for everything: `make thorough` tries all that `make test` tries a part of."""

import os

QUICK = bool(os.environ.get("FOOTNOTE_QUICK"))
THOROUGH = bool(os.environ.get("FOOTNOTE_THOROUGH"))
EXAMPLES = 200 if THOROUGH else 5 if QUICK else 20
"""Of each property that does not say how many it needs."""
