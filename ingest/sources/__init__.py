"""Where documents come from: one file a source, each an iterator of documents found."""
