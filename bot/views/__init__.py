"""Build what platforms show of a turn, as plain values. Platforms render these, and escape text last."""
