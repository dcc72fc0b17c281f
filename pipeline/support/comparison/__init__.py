"""Compare a sentence with the passage sentence that it follows: its values, names, denials and wording."""
