"""Code that all platforms share: API calls, rate limits, intake, catch-up, look-ups, Markdown and connections."""
