"""The tables of settings: what each may hold, with its defaults."""
