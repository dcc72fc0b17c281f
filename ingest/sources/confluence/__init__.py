"""Confluence, by its REST API or from its exports."""
