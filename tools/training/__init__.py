"""Training of the weights that the package contains."""
