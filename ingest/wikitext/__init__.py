"""Turn wikitext into plain text with our own scanner; `wikitext_parser` has the steps."""
