"""LaTeX of `<math>` as a line of plain text: letters, operators and brackets, no commands."""

import re

from ingest.wikitext.marks import raised

_SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "vartheta": "ϑ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π",
    "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ",
    "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ",
    "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "hbar": "ħ", "ell": "ℓ", "nabla": "∇", "partial": "∂",
    "infty": "∞", "infin": "∞", "emptyset": "∅", "varnothing": "∅", "aleph": "ℵ", "forall": "∀", "exists": "∃",
    "in": " ∈ ", "notin": " ∉ ", "ni": " ∋ ", "subset": " ⊂ ", "subseteq": " ⊆ ", "supset": " ⊃ ", "cup": " ∪ ",
    "cap": " ∩ ", "setminus": " \\ ", "times": " × ", "cdot": "·", "div": " ÷ ", "pm": " ± ", "mp": " ∓ ", "ast": "*",
    "star": "⋆", "circ": "∘", "bullet": "•", "oplus": " ⊕ ", "otimes": " ⊗ ", "wedge": " ∧ ", "land": " ∧ ",
    "vee": " ∨ ", "lor": " ∨ ", "neg": "¬", "lnot": "¬", "le": " ≤ ", "leq": " ≤ ", "ge": " ≥ ", "geq": " ≥ ",
    "ll": " ≪ ", "gg": " ≫ ", "ne": " ≠ ", "neq": " ≠ ", "equiv": " ≡ ", "approx": " ≈ ", "sim": " ~ ", "simeq": " ≃ ",
    "cong": " ≅ ", "propto": " ∝ ", "to": " → ", "rightarrow": " → ", "longrightarrow": " → ", "leftarrow": " ← ",
    "Rightarrow": " ⇒ ", "Leftarrow": " ⇐ ", "leftrightarrow": " ↔ ", "Leftrightarrow": " ⇔ ", "iff": " ⇔ ",
    "implies": " ⇒ ", "mapsto": " ↦ ", "sum": "∑", "prod": "∏", "int": "∫", "oint": "∮", "iint": "∬", "angle": "∠",
    "perp": " ⊥ ", "parallel": " ∥ ", "mid": " | ", "vdash": " ⊢ ", "models": " ⊨ ", "top": "⊤", "bot": "⊥",
    "dots": "…", "ldots": "…", "cdots": "…", "vdots": "…", "prime": "′", "degree": "°", "langle": "⟨", "rangle": "⟩",
    "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "lbrace": "{", "rbrace": "}", "backslash": "\\",
    "quad": " ", "qquad": " ", "R": "ℝ", "N": "ℕ", "Z": "ℤ", "Q": "ℚ", "C": "ℂ", "reals": "ℝ", "sqrt": "√",
}  # fmt: skip
_FUNCTIONS = frozenset({
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln",
    "exp", "lim", "max", "min", "sup", "inf", "det", "dim", "ker", "gcd", "mod", "deg", "hom", "arg", "Pr",
    "bmod",
})  # fmt: skip
_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_BINOMIAL = re.compile(r"\\[dt]?binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}(?:\{[lcr|]*\})?")
_STYLED = re.compile(r"\\(?:math[a-z]+|text[a-z]*|mbox|operatorname\*?|boldsymbol|pmb|rm|bf|overline|bar|hat|vec|"
                     r"tilde|dot|ddot|underline|color|widehat|mathbb)\s*\{([^{}]*)\}")  # fmt: skip
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?")
_SCRIPT = re.compile(r"([\^_])\s*\{([^{}]*)\}")
_EXPONENT = re.compile(r"\^([0-9n])(?![0-9])")
_ATOM = re.compile(r"\w+|\\[A-Za-z]+")
_DEEPEST = 6
"""How many levels of braces are read; what stands deeper loses its structure, not its letters."""


def plain(latex: str) -> str:
    r"""LaTeX as plain text: `\frac{a}{b}` is `a/b`, `x^{2}` is `x²`, `\alpha` is `α`."""
    text = _ENVIRONMENT.sub(" ", latex).replace("\\\\", "; ").replace("\\,", " ").replace("\\;", " ")
    for _ in range(_DEEPEST):
        before = text
        text = _STYLED.sub(r"\1", text)
        text = _ROOT.sub(lambda match: f"√{_grouped(match[1])}", text)
        text = _FRACTION.sub(lambda match: f"{_grouped(match[1])}/{_grouped(match[2])}", text)
        text = _BINOMIAL.sub(r"C(\1, \2)", text)
        text = _SCRIPT.sub(_script, text)
        if text == before:
            break
    text = _EXPONENT.sub(lambda match: raised(match[1]), _COMMAND.sub(_command, text))
    for gone in ("\\{", "\\}", "\\", "{", "}", "&", "~", "$"):
        text = text.replace(gone, {"\\{": "(", "\\}": ")"}.get(gone, " " if gone in "&~" else ""))
    return " ".join(text.split())


def _command(match: re.Match[str]) -> str:
    name = match[1]
    return _SYMBOLS.get(name) or (f" {name} " if name in _FUNCTIONS else "")


def _grouped(text: str) -> str:
    text = text.strip()
    return text if _ATOM.fullmatch(text) else f"({text})"


def _script(match: re.Match[str]) -> str:
    text = match[2].strip()
    if match[1] == "^" and (small := raised(text)) != text:
        return small
    return f"{match[1]}{_grouped(text)}"
