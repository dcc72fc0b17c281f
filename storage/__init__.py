"""Remembers: passages and their indexes, and the record of everything that was said."""
