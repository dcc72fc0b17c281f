"""The commands that ingest, list and forget documents."""
