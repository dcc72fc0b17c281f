"""Settings: typed tables, how they are read, and what their errors say."""
