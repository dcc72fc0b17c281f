"""Turn wikitext into plain text with a scanner of our own; `wikitext_parser` has the steps."""
