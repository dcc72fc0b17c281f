"""Render the results of commands; each module renders one subject, for a terminal and as JSON documents."""
