"""A wiki, read by its API."""
