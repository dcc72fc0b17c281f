"""Measure the robustness of Footnote: planted instructions and hostile files."""
