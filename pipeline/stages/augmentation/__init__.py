"""What `augmenter` alone needs: its working memory, policies, consolidated evidence, and the utility of a reply."""
