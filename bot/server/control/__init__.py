"""The control socket: how commands in a shell reach the server that has the home open."""
