"""MCP, the Model Context Protocol: how assistants and editors ask, over stdio and HTTP."""
