"""`footnote serve`: its lifecycle, background work, HTTP, control socket, logs and nightly refreshes."""
