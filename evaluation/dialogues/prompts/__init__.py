"""The prompts of who plays the user and who judges; what they share with the pipeline's stands there."""

from pathlib import Path

PROMPTS = Path(__file__).parent
