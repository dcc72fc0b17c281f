"""What the local support check knows: rules for a sentence's numbers, dates and names, and a score of its meaning."""
