"""Measures: a data set and a system in, a report out."""
