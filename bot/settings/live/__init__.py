"""Apply changed settings to a running server: what takes effect, names of channels, and the recorded scope."""
