"""What platforms share: intake, addressing, catch-up, rate limits, look-ups and connections."""
