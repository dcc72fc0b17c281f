"""Parse model replies into values: their format, citation marks, markup, blocks and sentences. Pure."""
