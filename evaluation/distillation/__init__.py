"""Train a small model on the recorded turns of a large one: export lessons, train a student, compare the two."""
