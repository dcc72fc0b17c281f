"""The platforms on which people ask: a package each, found by `registry`."""
