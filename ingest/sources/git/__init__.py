"""A git repository, read by the git program."""
