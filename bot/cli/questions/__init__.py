"""The commands that search, answer and check, and the conversation in the terminal."""
