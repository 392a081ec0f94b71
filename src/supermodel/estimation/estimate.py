"""The two shapes every answer takes: a number with its error, and log evidences with their covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from supermodel.errors import SupermodelError

LN10 = math.log(10.0)
UNKNOWN = 1e3  # nats: an error as large as this says that only a limit is known


@dataclass(frozen=True)
class Estimate:
    """A value and its standard error, in natural logarithms where it is a logarithm.

    >>> Estimate(4.8831, 0.0432)
    4.883 ± 0.043
    """

    value: float
    error: float

    def __format__(self, spec: str) -> str:
        if spec:
            return f"{self.value:{spec}} ± {self.error:{spec}}"
        return f"{self.value:.{self.decimals}f} ± {self.error:.{self.decimals}f}"

    @property
    def decimals(self) -> int:
        """Decimals that show two digits of the error (and no more than twelve)."""
        if not math.isfinite(self.error) or self.error <= 0:
            return 3
        return min(max(1 - math.floor(math.log10(self.error)), 1), 12)

    def __repr__(self) -> str:
        return format(self, "")

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, self.error)

    @property
    def log10(self) -> Estimate:
        """The same quantity in decimal logarithms."""
        return Estimate(self.value / LN10, self.error / LN10)

    def interval(self, sigmas: float = 1.0) -> tuple[float, float]:
        """`value` minus and plus `sigmas` errors."""
        return self.value - sigmas * self.error, self.value + sigmas * self.error


@dataclass(frozen=True, eq=False)
class Evidences:
    r"""$\ln Z_k$ of every model and the covariance of their errors.

    Where only ratios are known (`absolute` is false), `log_evidence` refuses and the common
    constant is arbitrary; differences and their errors mean the same either way:
    $\sigma^2(\ln Z_a - \ln Z_b) = C_{aa} + C_{bb} - 2 C_{ab}$.
    """

    names: tuple[str, ...]
    values: np.ndarray  # (K,)
    covariance: np.ndarray  # (K, K)
    absolute: bool = False
    details: dict = field(default_factory=dict)  # whatever the estimator wants to show: grids, fits, counts

    @classmethod
    def of_pair(cls, names: Sequence[str], log_bayes_factor: float, error: float, **details) -> Evidences:
        """Two models of which only ln Z_first - ln Z_second is known."""
        values = np.array([log_bayes_factor, 0.0])
        return cls(tuple(names), values, np.diag([error**2, 0.0]), False, details)

    def index(self, name: str) -> int:
        if name not in self.names:
            raise SupermodelError(
                f"there is no model {name!r} in this comparison; its models are {', '.join(map(repr, self.names))}."
            )
        return self.names.index(name)

    def log_bayes_factor(self, first: str, second: str) -> Estimate:
        """ln Z_first - ln Z_second."""
        a, b = self.index(first), self.index(second)
        c = self.covariance
        return Estimate(float(self.values[a] - self.values[b]), _error(c[a, a] + c[b, b] - 2 * c[a, b]))

    def log_evidence(self, name: str) -> Estimate:
        """ln Z of one model."""
        if not self.absolute:
            raise SupermodelError(
                "only ratios of evidences are known here: the supermodel holds no reference of known evidence. "
                "Use log_bayes_factor(a, b), or supermodel.evidence(model) for an absolute evidence."
            )
        k = self.index(name)
        return Estimate(float(self.values[k]), _error(self.covariance[k, k]))


def _error(variance: float) -> float:
    """The standard error; infinite where nothing but a limit is known, NaN where nothing at all is."""
    error = float(np.sqrt(np.maximum(variance, 0.0)))
    return math.inf if error >= 0.99 * UNKNOWN else error
