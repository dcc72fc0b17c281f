"""Measure what Footnote withstands: planted instructions, kills in mid-write, files made to do harm."""
