r"""Is the comparison calibrated for *this* problem? Simulate from each model, compare again, and count.

Data drawn from the prior predictive of model k are compared as the real ones would be. At a threshold t on ln B(first :
second): a false alarm is ln B > t although `second` made the data, a missed detection ln B ≤ t although `first` did.
And among data sets to which a model is given probability p, it must have made a share p: the sum of (truth - p) over
all data sets, in units of its spread $\sqrt{\sum p (1-p)}$, is standard normal if the probabilities mean what they say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from supermodel.comparing import compare
from supermodel.engine.progress import reporter
from supermodel.engine.workers import pool_of
from supermodel.errors import ModelError
from supermodel.jax_scope import in_float64
from supermodel.models.columns import received
from supermodel.models.model import Model
from supermodel.models.noise import Gaussian

Simulator = Callable[[Mapping[str, Any], Any, np.random.Generator], Any]


class Rate(NamedTuple):
    """A rate with its 95% interval (Wilson) from `events` in `trials`."""

    value: float
    low: float
    high: float
    events: int
    trials: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}; {self.events} of {self.trials})"


def rate(events: int, trials: int, z: float = 1.959964) -> Rate:
    """Wilson's interval, which neither leaves [0, 1] nor shrinks to a point at 0 events.

    >>> print(rate(0, 20))
    0.000 (0.000 to 0.161; 0 of 20)
    """
    if trials == 0:
        return Rate(math.nan, 0.0, 1.0, 0, 0)
    p = events / trials
    centre = (p + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(p * (1 - p) / trials + z**2 / (4 * trials**2))
    return Rate(
        p,
        max(centre - half, 0.0) if events else 0.0,
        min(centre + half, 1.0) if events < trials else 1.0,
        events,
        trials,
    )


@dataclass(frozen=True, eq=False)
class Calibration:
    """What came of comparing simulated data; one row per data set."""

    names: tuple[str, ...]
    truth: np.ndarray  # (n,): which model made the data
    log_evidences: np.ndarray  # (n, K)
    errors: np.ndarray  # (n,): of ln B(first : second)
    probabilities: np.ndarray  # (n, K), at equal prior odds
    levels: tuple[str, ...]  # the verdicts
    threshold: float
    failures: tuple[str, ...]  # sentences for data sets whose comparison raised an error

    @property
    def log_bayes_factors(self) -> np.ndarray:
        """ln B(first : second) of every data set, for the first two models."""
        return self.log_evidences[:, 0] - self.log_evidences[:, 1]

    def false_alarm(self, threshold: float | None = None) -> Rate:
        """How often the first model is preferred by more than the threshold though the second made the data."""
        made = self.log_bayes_factors[self.truth == self.names[1]]
        return rate(int(np.sum(made > self._at(threshold))), len(made))

    def missed_detection(self, threshold: float | None = None) -> Rate:
        """How often the first model is not preferred by more than the threshold though it made the data."""
        made = self.log_bayes_factors[self.truth == self.names[0]]
        return rate(int(np.sum(made <= self._at(threshold))), len(made))

    def _at(self, threshold: float | None) -> float:
        return self.threshold if threshold is None else threshold

    @property
    def calibration_z(self) -> dict[str, float]:
        """For each model, the sum of (truth - probability) in units of its spread: standard normal if all is well."""
        found = {}
        for k, name in enumerate(self.names):
            p = self.probabilities[:, k]
            spread = math.sqrt(float(np.sum(p * (1 - p))))
            found[name] = float(np.sum((self.truth == name) - p)) / spread if spread > 0 else math.nan
        return found

    def reliability(self, bins: int = 5) -> list[tuple[float, Rate]]:
        """(mean probability, share that is true) in bins of the probability given to a model.

        Of two models only the first is counted: the other is its mirror, and would count every data set twice.
        """
        counted = self.names[:1] if len(self.names) == 2 else self.names
        p = self.probabilities[:, : len(counted)].ravel()
        hit = (self.truth[:, None] == np.array(counted)[None, :]).ravel()
        places = np.minimum((p * bins).astype(int), bins - 1)
        return [
            (float(p[places == b].mean()), rate(int(hit[places == b].sum()), int((places == b).sum())))
            for b in range(bins)
            if np.any(places == b)
        ]

    def __str__(self) -> str:
        first, second = self.names[:2]
        worst = max(self.calibration_z.items(), key=lambda item: abs(item[1]) if math.isfinite(item[1]) else -1.0)
        bad = sum(level in ("fail", "limit") for level in self.levels)
        lines = [
            f"{len(self.truth)} simulated data sets, threshold ln B({first} : {second}) > {self.threshold:g}",
            f"  false alarms       {self.false_alarm()}",
            f"  missed detections  {self.missed_detection()}",
            f"  probabilities: truth minus stated, in errors, is {worst[1]:+.1f} (the worst, for {worst[0]}); "
            "within ±2 is as it should be",
        ]
        if bad or self.failures:
            lines.append(f"  {bad} verdicts of fail or limit, {len(self.failures)} comparisons with an error")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Stated probability against the share that is true; returns the Axes."""
        from supermodel.report.plots import calibration

        return calibration(self, ax=ax)


def calibrate(
    models: Mapping[str, Model], data: Any = None, *, n: int = 20, threshold: float = 0.0,
    simulate: Mapping[str, Simulator] | None = None, seed: int = 0, executor: Any = None, progress: bool | None = None,
    **options: Any,
) -> Calibration:  # fmt: skip
    """Simulate `n` data sets from each model, compare the models on each, and count.

    `simulate`: {model: function of (parameters, data, rng) that returns data like the real ones}; models written with
    `predict` and Gaussian noise simulate themselves, with `data` for everything but y. `executor`: a number of
    worker processes, or anything with `submit`, runs the comparisons side by side. `options` go to `compare`.
    """
    names = tuple(models)
    if len(names) < 2:
        raise ModelError("calibrate() compares models: give at least two.")
    data = received(data, models.values(), options.get("missing", "raise")).data
    tasks = []
    for k, name in enumerate(names):
        simulator = _simulator(name, models[name], simulate)
        for i in range(n):
            rng = np.random.default_rng([seed, k, i])
            tasks.append((name, simulator(_prior_draw(models[name], rng), data, rng), int(rng.integers(2**31))))
    one = partial(_one, models, options)
    with pool_of(executor) as pool:
        futures = [] if pool is None else [pool.submit(one, *task) for task in tasks]
        found = (future.result() for future in futures) if futures else (one(*task) for task in tasks)
        answers = _watched(found, len(tasks), progress)
    done = [(task[0], answer) for task, answer in zip(tasks, answers, strict=True)]
    good = [(name, answer) for name, answer in done if not isinstance(answer, str)]
    evidences = np.array([a[0] for _, a in good]).reshape(len(good), len(names))
    return Calibration(
        names,
        np.array([name for name, _ in good], dtype=str),
        evidences,
        np.array([a[1] for _, a in good]),
        np.exp(evidences - np.logaddexp.reduce(evidences, axis=1, keepdims=True)),
        tuple(a[2] for _, a in good),
        threshold,
        tuple(f"data from {name}: {answer}" for name, answer in done if isinstance(answer, str)),
    )


def _one(models: Mapping[str, Model], options: Mapping[str, Any], truth: str, data: Any, seed: int):
    """(ln Z of all models, error of ln B, verdict), or the sentence of an error: one bad set must not end the study."""
    try:
        result = compare(models, data, seed=seed, progress=False, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    first, second = result.names[:2]
    return result.evidences.values.tolist(), result.log_bayes_factor(first, second).error, result.verdict.level


def _watched(answers: Any, total: int, progress: bool | None) -> list:
    """The answers, with a line of progress for each."""
    shown = reporter(progress)
    collected = []
    for answer in answers:
        collected.append(answer)
        if shown is not None and shown.live:
            shown._show(f"calibrate: {len(collected)} of {total} data sets")
    if shown is not None:
        shown.close()
    return collected


@in_float64
def _prior_draw(model: Model, rng: np.random.Generator) -> dict[str, np.ndarray]:
    values = model.space.values_at(model.space.sample_prior(rng, 1))
    return {name: np.asarray(value)[0] for name, value in values.items()}


def _simulator(name: str, model: Model, simulate: Mapping[str, Simulator] | None) -> Simulator:
    if simulate is not None and name in simulate:
        return simulate[name]
    if not isinstance(model.noise, Gaussian):
        raise ModelError(
            f"model {name!r} cannot simulate data by itself: it has no `predict` with Gaussian noise. "
            "Give simulate={name: function of (parameters, data, rng) that returns data}."
        )
    return partial(_gaussian_data, model)


@in_float64
def _gaussian_data(model: Model, values: Mapping[str, Any], data: Any, rng: np.random.Generator) -> Any:
    gaussian: Any = model.noise
    mean = np.broadcast_to(np.asarray(model.prediction(values, data), np.float64), np.shape(data["y"]))
    return {**data, "y": mean + gaussian.draw(rng, data)}
