"""`python -m evaluation.speed.model SETTINGS`: a simulated server for who started it; see `running`."""

import asyncio
import sys

from evaluation.speed.model.running import until_input_ends
from evaluation.speed.model.settings import read

asyncio.run(until_input_ends(read(sys.argv[1])))
