"""Several bilby likelihoods with their priors, compared in one run: ln B with its own error, not a difference of two."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from supermodel.comparing import compare
from supermodel.doors.calls import refuse_unknown
from supermodel.errors import ModelError
from supermodel.models.adapters.from_bilby import from_bilby
from supermodel.results.comparison import Comparison


def compare_bilby(
    runs: Mapping[str, tuple[Any, Any]], *, constraint_draws: int = 200_000, **options: Any
) -> Comparison:
    """ln B between bilby models `{"name": (likelihood, priors), ...}`, with joint errors and one verdict.

    `options` are those of `compare`. The models are made by `from_bilby`; of two results of `run_sampler` that were made apart
    the errors of ln Z can only be added up.
    """
    if not isinstance(runs, Mapping):
        raise ModelError(
            f"compare_bilby takes a dict of name to (likelihood, priors); got {type(runs).__name__}. "
            'Write e.g. {"signal": (likelihood, priors), "noise": (other_likelihood, other_priors)}.'
        )
    refuse_unknown(
        options, (n for n in inspect.signature(compare).parameters if n not in ("models", "data")), "compare_bilby"
    )
    for name, run in runs.items():
        if not isinstance(run, (tuple, list)) or len(run) != 2:
            raise ModelError(
                f"compare_bilby needs a likelihood and its priors of every model; that of {name!r} is {type(run).__name__}. "
                "Write (likelihood, priors), the two first arguments of bilby's run_sampler."
            )
    models = {name: from_bilby(*run, constraint_draws=constraint_draws) for name, run in runs.items()}
    return compare(models, **options)
