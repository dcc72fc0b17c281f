"""The command line: parse arguments, call services, print results. Nothing is decided here."""
