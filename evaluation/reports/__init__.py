"""Report runs of dialogues: measures, intervals and tests, tables like those in the papers, and one HTML page."""
