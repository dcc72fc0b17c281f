"""What proves the record: its Merkle tree, and the checkpoints that are signed over it."""
