"""Examples: the handbook of an invented company, and a demonstration on it."""
