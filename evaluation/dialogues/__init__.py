"""Measure systems by dialogues with a simulated user, judged by a model."""
