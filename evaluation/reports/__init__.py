"""Report runs of dialogues: measures, intervals and tests, tables as the papers lay them out, and one page of HTML."""
