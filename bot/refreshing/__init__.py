"""How corpora are brought up to date from the settings, and what is on record of it."""
