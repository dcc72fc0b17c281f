"""Prompt templates, one for each model call, with worked examples, and the code that renders and sends them."""
