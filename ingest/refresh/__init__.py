"""Bring corpora up to date with their sources."""
