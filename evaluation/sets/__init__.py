"""Question sets with their documents, read into one plain form; one short file a format."""
