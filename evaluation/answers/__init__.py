"""Score retrieval, answers and abstention over question sets, and compare systems on the same conversations."""
