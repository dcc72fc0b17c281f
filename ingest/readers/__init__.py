"""Read documents: one file a family of formats, from bytes to a `ParsedDocument`; `file_formats` chooses."""
