"""Benchmarks for developers. They need the fake platforms of the tests, or invented data."""
