"""The prompts of the simulated user, judge and model alone; parts shared with the pipeline are in its folder."""

from pathlib import Path

PROMPTS = Path(__file__).parent
