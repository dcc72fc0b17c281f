"""Choose the sentences that the extractive system quotes. Pure.

`candidates` splits passages into sentences, `designations` drops those about other things, `answer_ranking` scores the
rest, and `quote_selection` chooses.
"""
