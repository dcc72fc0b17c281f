"""What a search offers: candidates of both indexes, their scores fused, and the vectors of lazy corpora."""
