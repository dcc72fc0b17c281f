"""Search: candidates from both indexes, the fusion of their scores, and the vectors of lazy corpora."""
