"""The proofs of the record: its tree, the tree's signed heads, their verification, and receipts."""
