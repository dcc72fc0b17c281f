"""Settings: typed tables, how they are read, and how their errors are explained."""
