"""What is chosen to be shown: worked examples, pinned answers, and questions to begin with."""
