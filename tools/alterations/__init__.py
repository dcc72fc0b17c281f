"""Alterations."""
