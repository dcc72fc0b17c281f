"""Process one question from the queue to its recorded delivery."""
