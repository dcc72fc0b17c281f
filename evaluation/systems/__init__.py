"""Systems side by side over the same conversations, and the model alone beside them."""
