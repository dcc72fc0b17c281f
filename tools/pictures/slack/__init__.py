"""Slack in pictures: its blocks, its threads and modals, in light looks."""
