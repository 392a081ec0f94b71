"""Cobaya runs us by the name of a class: the same digits, its chains and files, and what it cannot vouch for is refused."""

import math
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from supermodel.errors import SupermodelError

pytest.importorskip("cobaya")
from cobaya.log import LoggedError  # noqa: E402
from cobaya.model import get_model  # noqa: E402
from cobaya.run import run  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
NAME = "supermodel.cobaya.Supermodel"
X = np.linspace(-1, 1, 20)
Y = 0.4 + 0.5 * X + 0.3 * np.cos(37 * X)


def line(a, b):
    r = (Y - a - b * X) / 0.3
    return float(-0.5 * r @ r)


PARAMS = {
    "a": {"prior": {"dist": "norm", "loc": 0, "scale": 1}, "latex": r"\alpha"},
    "b": {"prior": {"min": -2, "max": 2}, "ref": 0.5},
}


def info(**changed):
    sampler = {"seed": 4, "explore": "quick", "progress": False} | changed.pop("options", {})
    return {"likelihood": {"line": line}, "params": PARAMS, "sampler": {NAME: sampler}, "debug": 50} | changed


def ours(**options):
    model = sm.Model({"a": stats.norm(0, 1), "b": stats.uniform(-2, 4)}, lambda p: line(p["a"], p["b"]))
    return sm.evidence(model, seed=4, explore="quick", progress=False, **options)


def test_the_same_digits_as_the_model_built_directly():
    _, sampler = run(info())
    products, direct = sampler.products(), ours()
    assert (products["logZ"], products["logZstd"]) == (direct.value, direct.error)
    through = sm.from_cobaya(get_model({k: v for k, v in info().items() if k != "sampler"}))
    assert sm.evidence(through, seed=4, explore="quick", progress=False).value == direct.value
    assert through.labels == {"a": r"$\alpha$"}
    assert (
        products["verdict"]["verdict"] == direct.verdict.level
        and products["verdict"]["evaluations"] == direct.evaluations
    )
    assert products["result"].posterior("model").mean("b") == direct.posterior("model").mean("b")


def test_draws_are_those_of_cobaya_and_of_getdist():
    _, sampler = run(info(options={"min_ess": 400}))
    frame = sampler.samples().data
    assert len(frame) >= 400 and set(frame["weight"]) == {1.0}
    for row in frame.to_dict("records")[:5]:
        assert row["chi2"] == row["chi2__line"] == pytest.approx(-2 * line(row["a"], row["b"]), rel=1e-9)
        prior = stats.norm.logpdf(row["a"]) - math.log(4)
        assert row["minuslogpost"] == pytest.approx(-prior - line(row["a"], row["b"]), rel=1e-9)
    pytest.importorskip("getdist")
    means = sampler.products(to_getdist=True)["sample"].getMeans()
    direct = ours(min_ess=400).posterior("model")
    np.testing.assert_allclose(means[:2], [direct.mean("a"), direct.mean("b")], atol=0.02)


def test_derived_parameters_and_more_than_one_likelihood_are_computed_for_the_draws():
    def half(a, b):
        return 0.5 * line(a, b), {"twice": 2 * a}

    likes = {
        "first": {"external": half, "input_params": ["a", "b"], "output_params": ["twice"]},
        "second": lambda a, b: 0.5 * line(a, b),
    }
    _, sampler = run(info(likelihood=likes, params=PARAMS | {"twice": {"latex": "2a"}}))
    frame = sampler.samples().data
    assert 50 < len(frame) <= 1000
    np.testing.assert_allclose(frame["twice"], 2 * frame["a"])
    np.testing.assert_allclose(frame["chi2__first"], frame["chi2__second"])
    assert sampler.products()["logZ"] == pytest.approx(ours().value, abs=0.1)


def test_files_resume_and_force(tmp_path):
    root = str(tmp_path / "chain")
    _, sampler = run(info(output=root))
    names = {path.name for path in tmp_path.iterdir()}
    assert {"chain.1.txt", "chain.logZ", "chain.verdict.yaml", "chain.supermodel.nc", "chain.updated.yaml"} <= names
    assert f"logZ: {sampler.products()['logZ']!r}" in (tmp_path / "chain.logZ").read_text()
    assert f"verdict: {sampler.result.verdict.level}" in (tmp_path / "chain.verdict.yaml").read_text()
    with pytest.raises(LoggedError, match="Delete the previous output"):
        run(info(output=root))
    _, again = run(info(output=root, resume=True, options={"target_error": 0.05}))
    assert again.products()["logZ"] == pytest.approx(sampler.products()["logZ"], abs=0.05)
    assert len((tmp_path / "chain.1.txt").read_text().splitlines()) == len(again.samples()) + 1
    _, fresh = run(info(output=root, force=True))
    assert fresh.products()["logZ"] == sampler.products()["logZ"]
    getdist = pytest.importorskip("getdist")
    assert getdist.loadMCSamples(root).numrows == len(fresh.samples())


def test_a_prior_that_may_not_be_normalised_is_refused_or_vouched_for():
    def wedge(a, b):
        return math.log1p(0.5 * b / 2)  # times the uniform density of b: it integrates to 1

    with pytest.raises(LoggedError, match=r"`prior` block .* 'wedge'.*external_priors=\"normalised\""):
        run(info(prior={"wedge": wedge}))
    _, sampler = run(info(prior={"wedge": wedge}, options={"external_priors": "normalised"}))
    direct = sm.Model(
        {"a": stats.norm(0, 1), "b": stats.uniform(-2, 4)}, lambda p: line(p["a"], p["b"]) + wedge(p["a"], p["b"])
    )
    direct = sm.evidence(direct, seed=4, explore="quick", progress=False)
    assert sampler.products()["logZ"] == direct.value
    row = sampler.samples().data.iloc[0]
    assert row["chi2"] == pytest.approx(-2 * line(row["a"], row["b"]), rel=1e-9)
    assert row["minuslogprior__wedge"] == pytest.approx(-wedge(row["a"], row["b"]))
    with pytest.raises(LoggedError, match="must be one of refuse, normalised"):
        run(info(options={"external_priors": "yes"}))


def test_a_prior_block_of_unknown_integral_is_a_model_of_its_own():
    """As the page says: moved to the likelihoods, and divided by what it is alone."""

    def tilt(a, b):
        return math.log(7.0) + 0.3 * b

    both = get_model({"likelihood": {"line": line, "tilt": tilt}, "params": PARAMS, "debug": 50})
    alone = get_model({"likelihood": {"tilt": tilt}, "params": PARAMS, "debug": 50})
    result = sm.compare(
        {"both": sm.from_cobaya(both), "prior": sm.from_cobaya(alone)}, seed=0, explore="quick", progress=False
    )
    found = result.log_bayes_factor("both", "prior")
    a, b = np.meshgrid(np.linspace(-5, 5, 801), np.linspace(-2, 2, 801))
    residuals = (Y - a[..., None] - b[..., None] * X) / 0.3
    prior = np.exp(-0.5 * a**2 + 0.3 * b)
    truth = math.log(np.sum(prior * np.exp(-0.5 * np.sum(residuals**2, axis=-1))) / prior.sum())
    assert abs(found.value - truth) < 5 * found.error + 0.01  # the grid's ends


def test_a_periodic_parameter_goes_round():
    params = {"phi": {"prior": {"min": 0, "max": 2 * math.pi}, "periodic": True}}
    model = get_model({"likelihood": {"round": lambda phi: 5 * math.cos(phi)}, "params": params, "debug": 50})
    result = sm.evidence(sm.from_cobaya(model), seed=0, explore="quick", progress=False)
    assert sm.from_cobaya(model).periodic == ("phi",)
    assert abs(result.value - math.log(np.i0(5.0))) < 5 * result.error + 1e-6


WORKERS = """
    import sys
    sys.path.insert(0, {source!r})
    from cobaya.model import get_model
    import supermodel as sm

    def bowl(a):
        return -0.5 * (a / 0.5) ** 2

    if __name__ == "__main__":
        prior = {{"dist": "norm", "loc": 0, "scale": 1}}
        model = sm.from_cobaya(get_model({{"likelihood": {{"bowl": bowl}}, "params": {{"a": {{"prior": prior}}}}, "debug": 50}}))
        alone, together = (sm.evidence(model, explore="quick", progress=False, executor=n).value for n in (None, 2))
        print(alone == together)
"""


def test_workers_make_the_model_from_its_input(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(WORKERS).format(source=str(Path(sm.__file__).parent.parent)))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip().endswith("True"), done.stderr[-2000:]


def test_unknown_options_and_what_is_no_model_are_refused():
    with pytest.raises(LoggedError, match="does not recognize some options: 'nlive'"):
        run(info(options={"nlive": 100}))
    with pytest.raises(LoggedError, match="`target_error` must be"):
        run(info(options={"target_error": -1}))
    with pytest.raises(SupermodelError, match="needs a Cobaya model; got dict"):
        sm.from_cobaya({})


def test_a_likelihood_class_in_a_file_and_an_input_in_yaml(tmp_path, monkeypatch):
    (tmp_path / "my_likelihood.py").write_text(
        textwrap.dedent(
            """
            from cobaya.likelihood import Likelihood

            class Bowl(Likelihood):
                width: float = 0.5

                def logp(self, **values):
                    return -0.5 * (values["a"] / self.width) ** 2

                def get_requirements(self):
                    return {"a": None}
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "bowl.yaml").write_text(
        textwrap.dedent(
            """
            debug: 50
            likelihood:
              my_likelihood.Bowl:
            params:
              a:
                prior: {dist: norm, loc: 0, scale: 1}
            sampler:
              supermodel.cobaya.Supermodel:
                progress: false
            """
        )
    )
    _, sampler = run(str(tmp_path / "bowl.yaml"), output=False)
    assert sampler.products()["logZ"] == pytest.approx(-0.5 * math.log(5), abs=0.05)
