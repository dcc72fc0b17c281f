"""Simulate a model server with OpenAI's chat protocol, at a set pace and with a set rate of failures.

It answers each of our prompts with text made from the prompt itself; it has no knowledge.
"""
