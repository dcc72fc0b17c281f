"""The commands of `footnote audit`."""
