"""Refreshes of a server's corpora: their sources, the nightly run, single documents, and the history of runs."""
