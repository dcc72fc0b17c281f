"""Check the installation; with `--model`, how well the configured model does its work.

`checks` has the checks by subject, `diagnosis` runs them. `model_exam` runs the stages' own prompts and parsers on a
model, with gold cases whose answers are known.
"""
