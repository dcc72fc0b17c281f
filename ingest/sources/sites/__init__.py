"""A web site, read by its sitemap."""
