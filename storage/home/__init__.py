"""The home folder: its owner, its state, and its backup."""
