"""The pages on which people ask, and read the record: Starlette and Jinja2, without a script."""
