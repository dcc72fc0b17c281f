"""Thinks: a conversation in, an answer out."""
