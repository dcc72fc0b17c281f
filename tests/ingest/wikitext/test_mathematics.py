"""Formulas as plain text."""

import pytest

from ingest.wikitext.html_tags import render_latex


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"E = mc^2", "E = mc²"),
        (r"\frac{a}{b}", "a/b"),
        (r"\frac{a+b}{2}", "(a+b)/2"),
        (r"\sqrt{x^2+1}", "√(x²+1)"),
        (r"x_{12} \leq \alpha", "x_12 ≤ α"),
        (r"\sum_{i=1}^{n} i", "∑_(i=1)ⁿ i"),
        (r"\mathrm{d}x \to \infty", "dx → ∞"),
        (r"\left\{ a \right\}", "( a )"),
        (r"10^{-6}", "10⁻⁶"),
        (r"\sin \theta", "sin θ"),
        (r"\begin{align} a &= b \\ c &= d \end{align}", "a = b ; c = d"),
        (r"\unknown{x}", "x"),
        ("", ""),
    ],
)
def test_formula_becomes_plain_text(latex, text):
    assert render_latex(latex) == text
