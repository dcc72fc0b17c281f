"""Gathers: documents in, passages out."""
