"""Take questions from platforms, and deliver each answer exactly once."""
