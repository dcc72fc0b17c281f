"""Systems side by side: the same conversations, the same scripted model, and what each said and left out."""
