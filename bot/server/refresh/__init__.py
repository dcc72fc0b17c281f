"""Refresh a server's corpora: their sources, the nightly refresh, single documents, and the history of runs."""
