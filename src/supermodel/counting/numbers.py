"""Which numbers of components are weighed, how probable each is before the data, and when no more are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from supermodel.errors import SupermodelError

MOST, LEAST = 4, 0  # unless another is asked for


def numbers_of(most: Any = MOST, least: Any = LEAST) -> range:
    """The numbers that are weighed, at most."""
    for label, value in (("most", most), ("least", least)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise SupermodelError(f"`{label}` is a number of components, an integer; got {value!r}.")
    if not 0 <= least < most:
        raise SupermodelError(
            f"`most` must be above `least`, and that not below 0, or there is nothing to count; got least={least}, most={most}."
        )
    return range(int(least), int(most) + 1)


def shares_of(given: Any, numbers: Sequence[int]) -> list[float]:
    """The prior probability of each number."""
    if given is None:
        return [1 / len(numbers)] * len(numbers)
    if isinstance(given, Mapping):
        wrong = sorted(str(k) for k in given if k not in numbers)
        if wrong:
            raise SupermodelError(
                f"`prior` gives a probability to {', '.join(wrong)}, but the numbers are {numbers[0]} to {numbers[-1]}."
            )
        shares = np.array([float(given.get(k, 0.0)) for k in numbers])
    elif hasattr(given, "logpmf"):  # of SciPy
        shares = np.exp(np.asarray(given.logpmf(np.array(numbers)), float))
    elif hasattr(given, "log_prob"):
        shares = np.exp(np.asarray(given.log_prob(np.array(numbers)), float))
    else:
        raise SupermodelError(
            "`prior` on the number is None (uniform), a distribution of counts, e.g. dist.Poisson(1.5), or a dict "
            f"{{number: probability}}; got {given!r}."
        )
    if not np.all(np.isfinite(shares)) or np.any(shares < 0) or not shares[0] * shares.sum() > 0:
        raise SupermodelError(
            f"the prior on the number must be finite, not negative, and above 0 for the least of them, {numbers[0]}; it gives "
            f"{dict(zip(numbers, shares.tolist(), strict=True))}."
        )
    return (shares / shares.sum()).tolist()


def check_stop(stop: Any) -> None:
    """Refuse what is no probability at which to stop."""
    if isinstance(stop, bool) or not isinstance(stop, int | float | np.number) or not 0 <= stop < 1:
        raise SupermodelError(f"`stop` is a probability, from 0 up and below 1; got {stop!r}.")
