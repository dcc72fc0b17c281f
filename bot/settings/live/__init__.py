"""Take changed settings while a server runs: what takes effect, what names of channels mean, what is on record."""
