"""What a platform can show of a turn, as values made by pure functions; platforms render them and escape last."""
