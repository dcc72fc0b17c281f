"""Benchmarks of single parts, for whoever changes them."""
