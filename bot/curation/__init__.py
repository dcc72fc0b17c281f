"""What admins choose of the answers on record: worked examples, and answers that are pinned to their questions."""
