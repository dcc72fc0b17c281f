"""A git repository, by the git program."""
