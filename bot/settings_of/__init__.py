"""The tables of the settings, a file for each subject."""
