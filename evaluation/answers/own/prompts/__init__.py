"""The prompt for questions about a passage."""

from pathlib import Path

PROMPTS = Path(__file__).parent
