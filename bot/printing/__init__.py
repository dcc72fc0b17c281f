"""What the command line prints: views for a terminal, and JSON documents."""
