"""Slack: its events become questions, views become its messages."""
