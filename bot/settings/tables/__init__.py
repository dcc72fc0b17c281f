"""The tables of settings: their keys, with types and defaults."""
