"""The desk: one place where questions from every platform are taken, answered once, and never lost."""
