"""`footnote setup`: ask, plan the changes, and make them."""
