"""What developers run: measurements of the code, training of weights, pictures."""
