"""Readers of file formats. Each module turns some formats into a `ParsedDocument`; `file_formats` chooses it."""
