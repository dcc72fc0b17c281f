"""The indexes over passages, disposable: dense (Chroma) and lexical (tantivy), and the embedders."""
