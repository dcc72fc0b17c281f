"""Compare a sentence with its source, the passage sentence that it follows: values, names, negations and wording."""
