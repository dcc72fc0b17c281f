"""The commands of `footnote audit` that find something in the record."""
