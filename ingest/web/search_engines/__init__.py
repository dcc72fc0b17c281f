"""Searching the web by an engine, and reading the beginnings of the pages that it names."""
