"""How fast it is, and how much memory it takes: each benchmark prints its figures."""
