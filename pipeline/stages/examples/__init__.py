"""Choose the worked examples of `in-context`: ranked by words and meaning, then diverse; as text or as triples."""
