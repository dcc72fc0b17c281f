"""The commands of operators: check, serve, back up and restore."""
