"""Store everything that lasts: passages and their indexes, the queue, and the record of all answers."""

import os

# Read by numpy when it is imported: for products as small as ours, a second thread only adds waiting.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
