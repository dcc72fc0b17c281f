"""Watch the server: readiness, the event loop, metrics, traces, the log."""
