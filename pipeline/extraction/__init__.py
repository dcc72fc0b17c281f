"""Choose what the extractive system quotes; all pure.

`candidates`, without what `designations` finds to be about others, then `answer_ranking`, for which `candidate_cascade`
says what is compared and read, then `quote_selection`.
"""
