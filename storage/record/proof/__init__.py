"""What proves the record: its tree, the signed heads of it, their verification, and receipts."""
