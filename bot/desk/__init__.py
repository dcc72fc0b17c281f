"""From a question in the queue to an answer that is delivered exactly once."""
