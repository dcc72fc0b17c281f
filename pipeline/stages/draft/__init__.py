"""Draft a reply and judge each sentence while the next is written, in one wave or in two."""
