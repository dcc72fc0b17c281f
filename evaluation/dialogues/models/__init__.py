"""The models of an evaluation: the simulated user, the reply cache, stand-ins by rules, and the cost estimate."""
