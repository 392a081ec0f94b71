"""`sampler: {supermodel.cobaya.Supermodel: {...}}` in a Cobaya input: ln Z with its error, draws, and a verdict."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
from cobaya import mpi
from cobaya.collection import SampleCollection
from cobaya.conventions import Extension
from cobaya.log import LoggedError
from cobaya.sampler import Sampler
from cobaya.yaml import yaml_dump_file

from supermodel import __version__
from supermodel.comparing import evidence
from supermodel.doors.calls import DRAWS, equal_draws, in_a_line, options, story
from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_cobaya import from_cobaya

CHECKPOINT, VERDICT = ".supermodel.nc", ".verdict.yaml"
CALLED = 1000  # draws that are handed over where each costs one more call: for derived parameters, and chi2 of each likelihood


class Supermodel(Sampler):
    """ln Z of the model with a calibrated error, equally weighted posterior draws, and a verdict on both.

    The options are those of `supermodel.evidence`: seed, target_error, max_evaluations, max_seconds, min_ess, explore, on_error,
    executor, progress; and `external_priors`, "refuse" or "normalised", see `supermodel.from_cobaya`.

    `products()` has "sample", "logZ", "logZstd", "verdict" and "result", our own result. With `output:` there are the chain
    `{prefix}.1.txt` for GetDist, `{prefix}.logZ`, `{prefix}.verdict.yaml` and, to go on from with `resume: True`,
    `{prefix}.supermodel.nc`.
    """

    sampler_type = "mcmc"
    supports_periodic_params = True
    _at_resume_prefer_new = [
        *Sampler._at_resume_prefer_new,
        "target_error",
        "max_evaluations",
        "max_seconds",
        "min_ess",
    ]

    @classmethod
    def get_class_options(cls, input_options: Any = None) -> dict[str, Any]:
        """The options with their defaults, as Cobaya asks for them."""
        own = {name: value for name, value in options().items() if name != "checkpoint"}
        kind = {"sampler_type": cls.sampler_type, "supports_periodic_params": cls.supports_periodic_params}
        return {**own, "external_priors": "refuse", **kind}

    def initialize(self) -> None:
        """Refuse what cannot be run, before the first call."""
        if mpi.size() > 1:
            raise LoggedError(
                self.log, "the sampler of supermodel is one process, and %d were started: all would do the same. Leave out "
                "mpirun; for more processes give the option `executor: 4`.", mpi.size(),
            )  # fmt: skip
        self.given = {name: getattr(self, name) for name in options() if name != "checkpoint"}
        self.given["seed"] = 0 if self.given["seed"] is None else self.given["seed"]
        self.result: Any = None
        self.collection: Any = None
        try:
            self.own = from_cobaya(self.model, external_priors=self.external_priors)
        except SupermodelError as error:
            raise LoggedError(self.log, "%s", str(error)) from error

    def run(self) -> None:
        """The run, or the rest of one that was stopped, and its files."""
        kept = self._file(CHECKPOINT) if self.output else None
        try:
            self.result = evidence(self.own, **self.given, checkpoint=kept)
        except SupermodelError as error:
            raise LoggedError(self.log, "%s", str(error)) from error
        (self.log.info if self.result.verdict.is_reliable else self.log.warning)(
            "log(Z) = %s; the verdict is %s", self.result.log_evidence(), in_a_line(self.result)
        )
        self.collection = self._collected()
        if self.output:
            self.collection.out_update()
            told = {"logZ": float(self.result.value), "logZstd": float(self.result.error)}
            yaml_dump_file(self._file(Extension.evidence), told, comment="log-evidence", error_if_exists=False)
            yaml_dump_file(self._file(VERDICT), story(self.result), error_if_exists=False)

    def _file(self, ending: str) -> str:
        return os.path.join(self.output.folder, self.output.prefix + ending)

    def _collected(self) -> SampleCollection:
        """Draws as Cobaya keeps them. Where there is one likelihood and nothing derived, no call is needed for that."""
        frame, names = equal_draws(self.result, self.given), list(self.model.parameterization.sampled_params())
        is_known = len(self.model.likelihood) == 1 and not self.model.parameterization.derived_params()
        if not is_known:
            most = min(DRAWS, max(CALLED, int(4 * (self.given["min_ess"] or 0))))
            frame = frame.iloc[:: -(-len(frame) // most)]
        collection = SampleCollection(self.model, self.output, name="1", sample_type=self.sampler_type)
        for point, log_likelihood in zip(frame[names].to_numpy(), frame["log_likelihood"].to_numpy(), strict=True):
            if is_known:
                priors = self.model.prior.logps(point)
                # External priors are a part of the likelihood to us, and a prior to Cobaya.
                collection.add(
                    point, logpriors=priors, loglikes=[log_likelihood - float(np.sum(priors[1:]))], derived=[]
                )
            else:
                collection.add(point, logpost=self.model.logposterior(point))
        return collection

    # -- what Cobaya asks for ---------------------------------------------------------------------------------------------

    def samples(self, combined: bool = False, skip_samples: float = 0, to_getdist: bool = False) -> Any:
        """The draws, as Cobaya's `SampleCollection` or GetDist's `MCSamples`; there is no burn-in to be skipped."""
        return self.collection.to_getdist() if to_getdist else self.collection

    def products(self, combined: bool = False, skip_samples: float = 0, to_getdist: bool = False) -> dict[str, Any]:
        """{"sample", "logZ", "logZstd", "verdict", "result"}."""
        return {
            "sample": self.samples(combined, skip_samples, to_getdist),
            "logZ": self.result.value,
            "logZstd": self.result.error,
            "verdict": story(self.result),
            "result": self.result,
        }

    @classmethod
    def output_files_regexps(cls, output: Any, info: Any = None, minimal: bool = False) -> list[tuple[Any, Any]]:
        """The files of a run: the first one says that there was one."""
        first, *others = (
            re.compile(re.escape(output.prefix + ending) + "$") for ending in (CHECKPOINT, Extension.evidence, VERDICT)
        )
        return [(first, None)] + (
            [] if minimal else [(each, None) for each in [*others, output.collection_regexp(name=None)]]
        )

    @classmethod
    def get_version(cls) -> str:
        """Our version, for the files that Cobaya writes."""
        return __version__
