"""Answer one question: from a conversation to a system, the record and an answer."""
