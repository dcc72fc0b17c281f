"""Small changes to a sentence: those that make it say something else, and those that leave what it says alone."""
