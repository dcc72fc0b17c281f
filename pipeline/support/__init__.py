"""Check locally, without a model server, whether passages support a sentence.

`support_check` decides. `rules` compares the numbers, dates, names and negations of a sentence with those of the
passages, by `comparison`; `scorer` rates how well words and meaning are covered. `analysis` parses both texts.
"""
