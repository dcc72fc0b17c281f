"""`footnote setup`: questions, what follows from their answers, and what is done then."""
