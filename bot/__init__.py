"""Speaks: the command line, the terminal, settings, and the composition root."""
