"""Numbers as people write them: no more digits than are known, and never a certainty that is none."""

from __future__ import annotations

import math

from supermodel.estimation.estimate import LN10, Estimate

FINEST = 4  # decimals beyond which a logarithm of a Bayes factor says nothing to anybody


def shown(estimate: Estimate, sign: bool = False) -> str:
    """`5.022 ± 0.012`, with no more decimals than anybody needs.

    >>> shown(Estimate(5.0222648, 1e-11)), shown(Estimate(-24914.3439, 1e-9)), shown(Estimate(5.02, float("inf")))
    ('5.0223 ± <0.0001', '-24914.3 ± <0.1', '5.020 ± ∞')
    >>> shown(Estimate(float("inf"), float("nan")))
    'unknown'
    """
    if not math.isfinite(estimate.value):
        return "unknown"
    digits = len(str(int(abs(estimate.value))))
    finest = min(max(6 - digits, 1), FINEST)
    decimals = min(estimate.decimals, finest)
    plus = "+" if sign else ""
    if math.isinf(estimate.error):
        return f"{estimate.value:{plus}.{decimals}f} ± ∞"
    if 0 <= estimate.error < 0.5 * 10.0**-finest:
        return f"{estimate.value:{plus}.{finest}f} ± <{10.0**-finest:.{finest}f}"
    return f"{estimate.value:{plus}.{decimals}f} ± {estimate.error:.{decimals}f}"


def as_ratio(log_value: float) -> str:
    """exp(ln B) as people write it: `152`, `3.1 × 10^12`.

    >>> as_ratio(5.0222648), as_ratio(600.0)
    ('152', '3.8 × 10^260')
    """
    if not math.isfinite(log_value):
        return "∞" if log_value > 0 else ("0" if log_value < 0 else "unknown")
    if abs(log_value) < math.log(1e4):
        value = math.exp(log_value)
        return f"{value:.3g}"
    exponent = math.floor(log_value / LN10)
    mantissa = math.exp(log_value - exponent * LN10)
    if mantissa >= 9.95:
        mantissa, exponent = 1.0, exponent + 1
    return f"{mantissa:.1f} × 10^{exponent}"


def thousands(n: float) -> str:
    """`12 345`."""
    return f"{n:,.0f}".replace(",", " ")


def number(value: float, spec: str = ".2f") -> str:
    """A number, or a dash where there is none."""
    if math.isfinite(value):
        text = format(value, spec)
        return text.lstrip("-") if float(text) == 0 else text
    return "–" if math.isnan(value) else "∞" if value > 0 else "−∞"


def probability(value: float) -> str:
    """A probability that never rounds to certainty.

    >>> probability(0.9935), probability(1.2e-7), probability(1 - 1e-9)
    ('0.9935', '1.2e-07', '>0.9999')
    """
    if math.isnan(value):
        return "–"
    if value > 0.99995:
        return ">0.9999"
    return f"{value:.4f}" if value >= 1e-4 else ("<1e-99" if value < 1e-99 else f"{value:.1e}")


def equals(value: float) -> str:
    """What stands between a probability's name and its end.

    >>> equals(0.9935), equals(1 - 1e-9)
    ('= 0.9935', '> 0.9999')
    """
    said = probability(value)
    return f"{said[0]} {said[1:]}" if said[0] in "<>" else f"= {said}"


def counted(n: float, noun: str) -> str:
    """`1 crossing`, `2 crossings`."""
    return f"{n:.0f} {noun}{'' if n == 1 else 's'}"


def mean_and_sd(mean: float, sd: float) -> str:
    """Two digits of the standard deviation, and the mean to match."""
    if not (math.isfinite(mean) and math.isfinite(sd)):
        return "–"
    if sd <= 0:
        return f"{mean:.4g}"
    decimals = 1 - math.floor(math.log10(sd))
    if not -3 <= decimals <= 8:
        return f"{mean:.3e} ± {sd:.1e}"
    return f"{mean:.{max(decimals, 0)}f} ± {sd:.{max(decimals, 0)}f}"


def duration(seconds: float) -> str:
    """`8.2 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
