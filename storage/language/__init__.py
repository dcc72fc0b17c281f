"""Human language: scripts, words, sentences and detection.

Pure functions over strings, which import nothing else of this project; every room may import them.
"""
