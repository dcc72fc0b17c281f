"""A web site by its sitemap."""
