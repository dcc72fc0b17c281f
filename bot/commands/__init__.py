"""The commands of `footnote`, a file for each group. They parse, call and print; nothing is decided here."""
