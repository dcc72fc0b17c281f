"""Views of results: Rich renderables for people, JSON documents for programs. Pure."""
