"""Read wikitext as plain text, by a scanner of our own: see `wikitext_parser` for the steps."""
