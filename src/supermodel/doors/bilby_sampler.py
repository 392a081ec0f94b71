"""`bilby.run_sampler(likelihood, priors, sampler="supermodel")`: found by bilby through its entry points."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bilby.core.sampler.base_sampler import Sampler
from bilby.core.utils import check_directory_exists_and_if_not_mkdir, logger

from supermodel.comparing import evidence
from supermodel.doors.calls import equal_draws, in_a_line, is_finished, options, refuse_unknown, story
from supermodel.models.adapters.from_bilby import from_bilby, log_mass
from supermodel.results.comparison import Evidence
from supermodel.results.export import plain


class Supermodel(Sampler):
    """ln Z with an error that holds, equally weighted posterior draws, and a verdict in `result.meta_data["supermodel"]`.

    The options are those of `supermodel.evidence` (`seed`, `target_error`, `explore`, `max_evaluations`, `max_seconds`,
    `min_ess`, `on_error`, `executor`, `progress`, `checkpoint`), `constraint_draws` of `from_bilby`, and bilby's own: `npool`
    is a number of worker processes, `sampling_seed` is `seed`, and `resume=True` (the default) keeps the run in
    `{outdir}/{label}_supermodel.nc` and goes on from there, to the same bits.

    The likelihood is called by `log_likelihood`, so `use_ratio` is False unless it is asked for. Draws are not nested, so
    `result.nested_samples` is not set.
    """

    sampler_name = "supermodel"
    default_kwargs = {**options(), "resume": True, "constraint_draws": 200_000}
    sampling_seed_key = "seed"

    def _translate_kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        for name in self.npool_equiv_kwargs:
            if name in kwargs:
                self._npool = kwargs.pop(name)
        return super()._translate_kwargs(kwargs)

    def _verify_kwargs_against_default_kwargs(self) -> None:
        refuse_unknown(self.kwargs, self.default_kwargs, "bilby's sampler 'supermodel'")

    def _verify_use_ratio(self) -> None:
        super()._verify_use_ratio()
        self.use_ratio = self._asked_for_ratio

    def __init__(self, likelihood: Any, priors: Any, use_ratio: Any = False, **kwargs: Any):
        self._asked_for_ratio = bool(use_ratio)
        super().__init__(likelihood, priors, use_ratio=self._asked_for_ratio, **kwargs)

    @property
    def checkpoint(self) -> Path:
        """Where the run is kept while it goes on."""
        given = self.kwargs["checkpoint"]
        return Path(self.outdir) / f"{self.label}_supermodel.nc" if given is None else Path(os.fspath(given))

    def run_sampler(self) -> Any:
        """The run, or the rest of one that was stopped; its result as bilby has it."""
        given = dict(self.kwargs)
        draws, resume = given.pop("constraint_draws"), given.pop("resume")
        if given["executor"] is None and self.npool is not None and self.npool > 1:
            given["executor"] = int(self.npool)
        check_directory_exists_and_if_not_mkdir(str(self.checkpoint.parent))
        if not resume:
            self.checkpoint.unlink(missing_ok=True)
        model = from_bilby(self.likelihood, self.priors, constraint_draws=draws)
        with self._signals_obeyed():
            found = evidence(model, **{**given, "checkpoint": self.checkpoint})
        if is_finished(found):  # of a run that met a limit it stays: the same call with more goes on
            self.checkpoint.unlink(missing_ok=True)
        return self._told(found, log_mass(self.priors, draws) if self.priors.constraint_keys else 0.0)

    def _told(self, found: Evidence, shift: float) -> Any:
        frame, result = equal_draws(found, self.kwargs), self.result
        result.samples = frame[self.search_parameter_keys].to_numpy()
        # The constrained prior was normalised by a factor on the likelihood: bilby has it in the prior.
        noise = self.likelihood.noise_log_likelihood() if self.use_ratio else 0.0
        result.log_likelihood_evaluations = frame["log_likelihood"].to_numpy() + shift - noise
        result.log_prior_evaluations = np.asarray(
            self.priors.ln_prob({key: frame[key].to_numpy() for key in self.search_parameter_keys}, axis=0)
        )
        result.log_evidence, result.log_evidence_err = found.value - noise, found.error
        posterior = found.posterior("model")
        result.information_gain = float(posterior.average(posterior.log_likelihood)) - found.value
        result.sampler_kwargs = plain(self.kwargs)  # an executor or a path would not go into bilby's file
        result.num_likelihood_evaluations = found.evaluations["likelihood"]
        result.meta_data = {**(result.meta_data or {}), "supermodel": story(found)}
        (logger.info if found.verdict.is_reliable else logger.warning)(f"supermodel's verdict is {in_a_line(found)}")
        return result

    def _run_test(self) -> Any:
        self.kwargs["max_evaluations"] = 1000
        return self.run_sampler()

    # -- stopped from outside -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals_obeyed(self) -> Iterator[None]:
        """Within, a batch system's signals and Ctrl-C end the program, as with all samplers of bilby; the run is kept."""
        before: dict[int, Any] = {}
        try:
            for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGALRM", signal.SIGTERM)):
                before.setdefault(number, signal.signal(number, self.write_current_state_and_exit))
        except ValueError:  # not in the main thread: then others listen
            pass
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def write_current_state(self) -> None:
        """Nothing to do: the checkpoint is written as the run goes on, and once more when the run is left."""

    def write_current_state_and_exit(self, signum: int | None = None, frame: Any = None) -> None:
        """Leave the run, which keeps itself, with bilby's exit code."""
        self._log_interruption(signum=signum)
        self.write_current_state()
        sys.exit(self.exit_code)

    @classmethod
    def get_expected_outputs(cls, outdir: Any = None, label: Any = None) -> tuple[list[str], list[str]]:
        """The checkpoint, for those who carry files between machines."""
        return [os.path.join(outdir, f"{label}_supermodel.nc")], []
