"""Measure systems by dialogues with a simulated user, and let a model judge what they said."""
