"""The record: the audit log, searches in it, admins' choices, erasure, and the proofs."""
