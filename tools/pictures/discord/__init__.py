"""Discord in pictures: its components, its replies and what only one person sees, in dark looks."""
