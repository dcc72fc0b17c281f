"""The prompt that has a model make questions of a passage."""

from pathlib import Path

PROMPTS = Path(__file__).parent
