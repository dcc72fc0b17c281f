"""The commands that read, prove and erase the record, and choose recorded answers as examples."""
