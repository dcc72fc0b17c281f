"""Human language: scripts, words, sentences and detection; every room may import it.

Pure functions over strings, which import nothing else of this project.
"""
