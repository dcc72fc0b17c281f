"""Choose what the extractive system quotes: `candidates`, then `answer_ranking`, then `quote_selection`; all pure."""
