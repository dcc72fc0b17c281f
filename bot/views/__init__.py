"""Build what platforms show of a turn, as values of pure functions; platforms render them and escape last."""
