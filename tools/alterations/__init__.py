"""Change true sentences in controlled ways, to measure what a verifier catches."""
