"""The control socket, by which commands in a shell reach the server that has the home open."""
