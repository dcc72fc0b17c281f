"""What is written about Footnote, and what draws the pictures in it."""
