"""Watch the server: readiness, the event loop, the log."""
