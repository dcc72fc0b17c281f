"""Turn wikitext into plain text by our own scanner; `wikitext_parser` has the steps."""
