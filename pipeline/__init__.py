"""Turn a conversation into an answer."""
