"""The running server's local socket: what other commands of the same user ask of it, and its client."""
