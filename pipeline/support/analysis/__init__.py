"""Parse a text for the support check: tokens, quantities, dates, proper names, clauses."""
