"""MCP, the Model Context Protocol, by which assistants and editors ask over stdio and HTTP."""
