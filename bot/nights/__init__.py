"""The nights of a server: worked once over all processes, and told."""
