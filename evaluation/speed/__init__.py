"""Measure speed and memory; each benchmark prints its figures."""
