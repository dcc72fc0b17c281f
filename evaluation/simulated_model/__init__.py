"""Simulate a model server with OpenAI's chat protocol, at a set pace and with a set rate of failures.

It answers each of our prompts with text that is made from the prompt itself. It has no knowledge.
"""
