"""Report runs of dialogues: measures, intervals and tests, tables like those of the papers, and one page of HTML."""
