"""The proofs of the record: its tree, the signed heads of the tree, their verification, and receipts."""
