"""What storage knows of human language: scripts, sentences, words and which language a text is in.

Pure functions over strings; imports nothing else of this project, so every room may use it.
"""
