"""Formulas and sentences of the paper that are wrong as printed; corrected in docs/paper/errata.md."""

from __future__ import annotations

from typing import NamedTuple


class Misprint(NamedTuple):
    """Where it stands, what is printed, and what is right."""

    name: str
    where: str
    printed: str
    correct: str


MISPRINTS = (
    Misprint("E1", "App. A and B, likelihood", "1/∏√(2πσᵢ)", "1/∏√(2πσᵢ²)"),
    Misprint(
        "E2", "App. A, evidence", "a factor bᵀb", "the factor exp(−bᵀb/2); as printed ln Z is off by 45 on a test case"
    ),
    Misprint("E3", "App. A, norm of the prior", "1/√|2πP⁻¹|", "1/√|2πP|; without consequence for P = I"),
    Misprint("E4", "App. A, completed square", "h = −½A⁻¹h", "h = −½A⁻¹b"),
    Misprint("E5", "App. A, p(φ₂ | D)", "−EᵀB⁻¹E in the exponent", "+EᵀB⁻¹E; as printed it does not integrate to 1"),
    Misprint("E6", "App. A, E", "… − D₂b", "… − D₂ᵀb"),
    Misprint("E7", "App. A, Savage-Dickey ratio", "√(|2πC₂⁻¹|/|2πB⁻¹|)", "√(|2πC₂|/|2πB⁻¹|)"),
    Misprint("E8", "App. A", "C₁⁻¹, C₂⁻¹ are the Fisher information", "they are the precisions of the priors"),
    Misprint("E9", "App. C, Σ₁", "vᵀv + C₂⁻¹, v undefined", "D₂ᵀD₂ + C₂⁻¹"),
    Misprint("E10", "App. C, Q", "|2πC₂⁻¹|", "|2πC₂|"),
    Misprint("E11", "App. C", "φ₂D₂ᵀD₂φ₂", "φ₂ᵀD₂ᵀD₂φ₂"),
    Misprint(
        "E15",
        "(2.1), (2.2) against (2.4)",
        "α = 0 is M₁, later α = 1 is M₁",
        "one convention: mixing them flips the sign of ln B",
    ),
    Misprint("E16", "below (2.1)", "“supermodel posterior”", "supermodel likelihood"),
    Misprint(
        "E17", "(1.1)", "no condition on the priors", "the conditional prior of M₁ at φ = 0 must be the prior of M₂"
    ),
    Misprint("E18", "above (2.8)", "derivation in Appendix C", "Appendix D"),
    Misprint(
        "E19",
        "Sec. 6",
        "keep the elements with α = 1 or 0",
        "there are none for a continuous α; all draws count, with weights",
    ),
    Misprint("E21", "(2.10)", "=", "proportional to: the norm is missing"),
    Misprint("E22", "(3.2), Figs. 6, 8, 9", "likelihood of α", "likelihood of ln B₂₁ given the samples of α"),
)
