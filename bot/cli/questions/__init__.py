"""Commands that ask, and the conversation in the terminal."""
