"""One file for each revision, oldest first; none is changed once it was released."""
