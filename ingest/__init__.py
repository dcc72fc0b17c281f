"""Read documents from sources, and split them into passages."""
