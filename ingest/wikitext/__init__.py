"""Wikitext as plain text, by a scanner of our own: see `reading` for the steps."""
