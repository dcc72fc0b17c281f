"""Parts that only `augmenter` needs: its memory, its policies, consolidation of evidence, and rating of replies."""
