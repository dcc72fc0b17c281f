"""Sources of documents: each lists its documents, and loads those that changed."""
