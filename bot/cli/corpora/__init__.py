"""Commands of corpora: read in, list, forget."""
