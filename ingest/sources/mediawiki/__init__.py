"""A wiki by its API."""
