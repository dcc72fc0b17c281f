"""Answer one question: from a conversation through a system to a recorded answer."""
