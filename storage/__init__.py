"""Remembers: passages and their indexes, and the record of everything that was said."""

import os

# Read by numpy when it is imported: products as small as ours only wait for a second thread, which others keep busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
