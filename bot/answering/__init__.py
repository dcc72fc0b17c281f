"""Answer one question: read the conversation, run a system, and record the answer."""
