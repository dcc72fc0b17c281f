"""Measure systems in dialogues with a simulated user, whose replies a model judges."""
