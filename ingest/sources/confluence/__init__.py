"""Confluence by its REST API, and its exports."""
