"""Choose what the extractive system quotes; all pure.

`candidates`, without what `designations` finds to be about others, then `answer_ranking`, then `quote_selection`.
"""
