"""Make questions about a team's own documents, and ask them of systems."""
