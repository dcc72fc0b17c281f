"""Jobs: the way of one question from the queue to its recorded delivery."""
