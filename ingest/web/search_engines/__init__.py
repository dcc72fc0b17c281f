"""Search the web with a search engine, and read the beginnings of the pages that it finds."""
