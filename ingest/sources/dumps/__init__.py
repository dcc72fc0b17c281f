"""Dumps of Wikipedia and of other wikis: from files and from a mirror."""
