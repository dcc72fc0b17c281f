"""Developers' tools: measurements of the code, training of weights, pictures."""
