"""bilby's own call runs us: the same digits, its kind of result, its checkpoints, and nothing passed over without a word."""

import json
import math
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import supermodel as sm
from supermodel.errors import SupermodelError

bilby = pytest.importorskip("bilby")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
prior = bilby.core.prior


class Slope(bilby.Likelihood):
    """y = a + b x with noise of 0.3; noise evidence: a = b = 0."""

    X = np.linspace(-1, 1, 20)
    Y = 0.4 + 0.5 * X + 0.3 * np.cos(37 * X)

    def __init__(self):
        super().__init__(parameters={"a": None, "b": None})  # what bilby before 2.7 needs

    def log_likelihood(self, parameters=None):
        parameters = parameters or self.parameters
        r = (self.Y - parameters["a"] - parameters["b"] * self.X) / 0.3
        return float(-0.5 * r @ r)

    def log_likelihood_ratio(self, parameters=None):
        return self.log_likelihood(parameters) - self.noise_log_likelihood()

    def noise_log_likelihood(self):
        return float(-0.5 * np.sum((self.Y / 0.3) ** 2))


def exact(sd_a=1.0, sd_b=1.0):
    """ln Z for normal priors about 0, in closed form."""
    design = np.stack([sd_a * np.ones(20), sd_b * Slope.X])
    covariance = np.eye(20) + design.T @ design / 0.09
    y = Slope.Y / 0.3
    return -0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(covariance)[1])


def priors(**more):
    return prior.PriorDict({"a": prior.Normal(0, 1, "a"), "b": prior.Normal(0, 1, "b")} | more)


def run(likelihood, given, folder, **options):
    return bilby.run_sampler(
        likelihood, given, sampler="supermodel", outdir=str(folder), label="t", progress=False, explore="quick", **options
    )  # fmt: skip


def test_bilby_finds_the_sampler_by_its_entry_point():
    if "supermodel" not in bilby.core.sampler.get_implemented_samplers():
        pytest.skip("the installed distribution has no entry point of ours")
    assert bilby.core.sampler.get_sampler_class("supermodel").__name__ == "Supermodel"


@pytest.fixture(autouse=True)
def found_without_an_installation(monkeypatch):
    """Tests run on the sources: where what is installed is older, the sampler is found all the same."""
    samplers = bilby.core.sampler.IMPLEMENTED_SAMPLERS._samplers
    if "supermodel" not in samplers:
        from importlib.metadata import EntryPoint

        here = EntryPoint("supermodel", "supermodel.doors.bilby_sampler:Supermodel", "bilby.samplers")
        monkeypatch.setitem(samplers, "supermodel", here)


def test_the_same_digits_as_our_own_call_and_a_result_of_bilby(tmp_path):
    likelihood = Slope()
    result = run(likelihood, priors(), tmp_path, sampling_seed=4, min_ess=400)
    ours = sm.evidence(sm.from_bilby(Slope(), priors()), seed=4, min_ess=400, explore="quick", progress=False)
    assert (result.log_evidence, result.log_evidence_err) == (ours.value, ours.error)
    assert abs(result.log_evidence - exact()) < 5 * result.log_evidence_err + 1e-6
    assert result.log_noise_evidence == likelihood.noise_log_likelihood()
    assert result.log_bayes_factor == pytest.approx(result.log_evidence - result.log_noise_evidence)
    frame = result.posterior
    assert len(frame) > 300 and len(frame) == len(result.log_likelihood_evaluations) == len(
        result.log_prior_evaluations
    )
    np.testing.assert_allclose(
        frame["log_likelihood"],
        [likelihood.log_likelihood(dict(row)) for _, row in frame.iterrows()],
        rtol=1e-9,
        atol=1e-9,
    )
    np.testing.assert_allclose(frame["log_prior"], -0.5 * (frame["a"] ** 2 + frame["b"] ** 2) - math.log(2 * math.pi))
    assert abs(frame["b"].mean() - ours.posterior("model").mean("b")) < 0.02
    told = result.meta_data["supermodel"]
    assert told["verdict"] == ours.verdict.level and told["evaluations"] == ours.evaluations
    assert [tuple(r) for r in told["reasons"]] == [tuple(r) for r in ours.verdict.reasons]
    assert told["version"] == sm.__version__ and told["next_steps"] == [] and told["seed"] == 4
    assert result.num_likelihood_evaluations == ours.evaluations["likelihood"] and result.information_gain > 0
    assert not list(tmp_path.glob("*.nc"))  # a run that is finished leaves nothing to go on with
    stored = bilby.read_in_result(outdir=str(tmp_path), label="t")
    assert stored.log_evidence == result.log_evidence and stored.meta_data["supermodel"]["verdict"] == told["verdict"]
    assert json.dumps(told)


def test_the_ratio_to_noise_is_given_where_it_is_asked_for(tmp_path):
    result = run(Slope(), priors(), tmp_path, use_ratio=True)
    noise = Slope().noise_log_likelihood()
    assert result.use_ratio and result.log_bayes_factor == pytest.approx(exact() - noise, abs=0.2)
    assert result.log_evidence == pytest.approx(exact(), abs=0.2)
    row = result.posterior.iloc[0]
    assert row["log_likelihood"] == pytest.approx(Slope().log_likelihood_ratio(dict(row)))


def test_constants_constraints_and_conditions(tmp_path):
    fixed = run(Slope(), priors(b=0.5), tmp_path / "fixed")
    assert fixed.search_parameter_keys == ["a"] and set(fixed.posterior["b"]) == {0.5}
    delta = run(Slope(), priors(b=prior.DeltaFunction(0.5)), tmp_path / "delta")
    assert delta.log_evidence == fixed.log_evidence

    def convert(parameters):
        return {**parameters, "sum": parameters["a"] + parameters["b"]}

    cut = prior.PriorDict(dict(priors()) | {"sum": prior.Constraint(0, 10)}, conversion_function=convert)
    likelihood = Slope()
    half = run(likelihood, cut, tmp_path / "cut")
    # a + b > 0 holds for half of the prior and for nearly all of the posterior.
    assert half.log_evidence == pytest.approx(exact() + math.log(2), abs=0.1)
    assert np.all(half.posterior["a"] + half.posterior["b"] >= 0)
    row = half.posterior.iloc[0]
    assert row["log_likelihood"] == pytest.approx(likelihood.log_likelihood(dict(row)))  # without the mass of the prior
    again = sm.evidence(sm.from_bilby(Slope(), cut), seed=0, explore="quick", progress=False)
    assert half.log_evidence == again.value

    def narrower(reference, a):
        return {"minimum": 0.0, "maximum": 1 + a}

    depends = prior.ConditionalPriorDict(
        {"a": prior.Uniform(0, 1), "b": prior.ConditionalUniform(narrower, minimum=0, maximum=1)}
    )
    result = run(Slope(), depends, tmp_path / "conditional")
    assert np.all(result.posterior["b"] <= 1 + result.posterior["a"]) and np.isfinite(result.log_evidence)


def test_what_constraints_leave_is_the_same_at_every_call_and_bilby_draws_on_as_before():
    from bilby.core.utils import random

    cut = prior.PriorDict(
        dict(priors()) | {"sum": prior.Constraint(0, 10)}, conversion_function=lambda p: {**p, "sum": p["a"] + p["b"]}
    )
    depends = prior.ConditionalPriorDict(
        {
            "a": prior.Uniform(0, 1),
            "b": prior.ConditionalUniform(lambda reference, a: {"minimum": 0.0, "maximum": a}, minimum=0, maximum=1),
            "sum": prior.Constraint(0, 1),
        },
        conversion_function=lambda p: {**p, "sum": p["a"] + p["b"]},
    )
    inside = sm.from_bilby(Slope(), depends).log_likelihood({"a": 0.3, "b": 0.2}) - Slope().log_likelihood(
        {"a": 0.3, "b": 0.2}
    )
    assert inside == pytest.approx(-math.log(math.log(2)), abs=0.01)  # P(a + b < 1) = 1/2 + ln 2 - 1/2
    own = random.rng
    first, second = (sm.from_bilby(Slope(), cut).log_likelihood({"a": 0.3, "b": 0.2}) for _ in range(2))
    assert first == second and random.rng is own


def test_a_periodic_prior_goes_round(tmp_path):
    class Round(bilby.Likelihood):
        def __init__(self):
            super().__init__(parameters={"phi": None})

        def log_likelihood(self, parameters=None):
            return 5 * math.cos((parameters or self.parameters)["phi"])

    given = prior.PriorDict({"phi": prior.Uniform(0, 2 * np.pi, "phi", boundary="periodic")})
    result = run(Round(), given, tmp_path)
    assert result.log_evidence == pytest.approx(math.log(np.i0(5.0)), abs=0.2)
    assert result.meta_data["supermodel"]["verdict"] in ("ok", "caution")


def test_unknown_options_are_refused_with_the_list(tmp_path):
    with pytest.raises(
        SupermodelError, match=r"no option 'nlive'.*options are seed, target_error.*max_seconds.*resume"
    ):
        run(Slope(), priors(), tmp_path, nlive=500)
    with pytest.raises(SupermodelError, match="Did you mean 'target_error'"):
        run(Slope(), priors(), tmp_path, target_eror=0.2)
    with pytest.raises(SupermodelError, match="`target_error` must be"):
        run(Slope(), priors(), tmp_path, target_error=-1)


def test_a_run_that_met_its_limit_is_kept_and_goes_on(tmp_path):
    cut = run(Slope(), priors(), tmp_path, max_evaluations=100, save=False, target_error=0.003)
    assert cut.meta_data["supermodel"]["ended"] != "target"
    (kept,) = tmp_path.glob("t_supermodel.nc")
    resumed = run(Slope(), priors(), tmp_path, save=False, target_error=0.003)
    assert not kept.exists()
    whole = run(Slope(), priors(), tmp_path / "whole", save=False, target_error=0.003)
    assert resumed.log_evidence == pytest.approx(whole.log_evidence, abs=1e-12)  # a limit may cost the last bit
    run(Slope(), priors(), tmp_path, max_evaluations=100, save=False)
    fresh = run(Slope(), priors(), tmp_path, resume=False, save=False, target_error=0.003)
    assert fresh.log_evidence == whole.log_evidence  # nothing of what was kept


SCRIPT = """
    import time
    import bilby, numpy as np
    from supermodel.doors.bilby_sampler import Supermodel

    class Slow(bilby.Likelihood):
        def __init__(self):
            super().__init__(parameters={"a": None})

        def log_likelihood(self, parameters=None):
            time.sleep(0.002)
            return -0.5 * (parameters or self.parameters)["a"] ** 2

    if __name__ == "__main__":
        priors = bilby.core.prior.PriorDict({"a": bilby.core.prior.Normal(0, 1, "a")})
        sampler = Supermodel(Slow(), priors, outdir=OUT, label="t", target_error=1e-4, progress=False, explore="thorough")
        print("begun", flush=True)
        sampler.run_sampler()
"""


def test_a_batch_system_that_ends_the_program_finds_bilby_s_exit_code(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("OUT", repr(str(tmp_path))))
    source = str(Path(sm.__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {source!r}); import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    job = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert job.stdout.readline().strip() == "begun"
    try:
        job.wait(timeout=6)
    except subprocess.TimeoutExpired:
        job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=60) == 130


def test_an_executor_and_a_path_of_one_s_own_and_their_words_in_the_file(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as threads:
        result = run(Slope(), priors(), tmp_path, executor=threads, checkpoint=tmp_path / "kept" / "mine.nc")
    assert result.log_evidence == run(Slope(), priors(), tmp_path / "alone").log_evidence
    stored = bilby.read_in_result(outdir=str(tmp_path), label="t").sampler_kwargs
    assert stored["checkpoint"].endswith("mine.nc") and "ThreadPoolExecutor" in stored["executor"]


def test_models_of_bilby_compared_with_one_error():
    class Level(Slope):
        def log_likelihood(self, parameters=None):
            return super().log_likelihood({**parameters, "b": 0.0})

    result = sm.compare_bilby(
        {"slope": (Slope(), priors()), "level": (Level(), {"a": prior.Normal(0, 1, "a")})},
        seed=0, explore="quick", progress=False,
    )  # fmt: skip
    found = result.log_bayes_factor("slope", "level")
    assert abs(found.value - (exact() - exact(sd_b=0.0))) < 5 * found.error + 1e-6
    with pytest.raises(SupermodelError, match=r"`?compare_bilby`? has no option 'nlive'"):
        sm.compare_bilby({"a": (Slope(), priors())}, nlive=3)
    with pytest.raises(SupermodelError, match="that of 'a' is Slope"):
        sm.compare_bilby({"a": Slope()})
    with pytest.raises(SupermodelError, match="takes a dict of name"):
        sm.compare_bilby([Slope()])
