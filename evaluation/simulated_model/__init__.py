"""Simulate a model server: it speaks OpenAI's chat protocol at a set pace, counts, and fails at set rates.

It answers every prompt of ours with text made from the prompt itself, and knows nothing.
"""
