"""Parts that only `augmenter` needs: its working memory, policies, consolidated evidence and a reply's utility."""
