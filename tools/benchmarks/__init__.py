"""Benchmarks for developers, which need the tests' fake platforms or invented data."""
