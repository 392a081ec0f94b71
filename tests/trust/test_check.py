"""What a referee would ask of the models: each question passes a good model and sees a planted mistake."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from made_result import made_result
from supermodel.errors import SupermodelError
from supermodel.trust import check as module
from supermodel.verdict.verdict import Verdict

DATA = {"y": np.array([0.3, -0.9, 1.4, 0.2])}


def likelihood(dropped: float = 0.0):
    def log_likelihood(p, data):
        return (stats.norm.logpdf(data["y"], p.get("level", 0.0)) + dropped).sum()

    return log_likelihood


def models(dropped: float = 0.0):
    return {
        "level": sm.Model({"level": stats.norm(0, 1)}, likelihood(dropped)),
        "nothing": sm.Model({}, likelihood(dropped)),
    }


def compared(log_bayes_factor: float, antisymmetric: bool = True, level: str = "ok"):
    """In place of `compare`: a result of ln B(first : second) as given, or one that forgets to turn its sign."""
    firsts = []

    def compare(pair, data, **options):
        first, second = pair
        firsts.append(first)
        turned = antisymmetric and len(firsts) > 1 and first != firsts[0]
        made = made_result(0, {first: "ab", second: "ab"}, chains=4, draws=20, verdict=Verdict(level))
        values = np.array([-log_bayes_factor if turned else log_bayes_factor, 0.0])
        return dataclasses.replace(
            made, evidences=dataclasses.replace(made.evidences, values=values, covariance=np.diag([0.01, 0.0]))
        )

    return compare


def answers(found) -> dict[str, bool | None]:
    return {finding.question: finding.passed for finding in found.findings}


def test_good_models_pass_by_a_real_comparison():
    found = sm.check(models(), DATA, target_error=0.5)
    assert found.passed and None not in list(answers(found).values())[:1], str(found)
    assert len(found.findings) == 5 + 5 + 1 and str(found).startswith("ok")


def test_a_dropped_constant_is_seen_and_where_it_cannot_be_it_is_said(monkeypatch):
    monkeypatch.setattr(module, "compare", compared(0.0))
    found = sm.check(models(dropped=0.5 * np.log(2 * np.pi)), DATA)
    assert [f.passed for f in found.findings if "constants" in f.question] == [False, False] and not found.passed
    counts = {"k": sm.Model({}, lambda p, data: stats.poisson.logpmf(data["y"], 2.0).sum())}
    assert answers(sm.check(counts, {"y": np.array([3.0, 1.0])}))["the likelihood of 'k' keeps its constants"] is True
    nowhere = {"k": sm.Model({}, lambda p, data: 0.0)}
    assert answers(sm.check(nowhere, np.zeros(2)))["the likelihood of 'k' keeps its constants"] is None


def test_a_misspelt_parameter_is_seen(monkeypatch):
    monkeypatch.setattr(module, "compare", compared(0.0))
    question = "the likelihood of 'level' reads every parameter"
    assert answers(sm.check(models(), DATA))[question] is True
    misspelt = {"level": sm.Model({"lewel": stats.norm(0, 1)}, likelihood())}
    found = sm.check(misspelt, DATA)
    assert answers(found)[question] is False and "lewel" in str(found) and not found.passed


def test_a_likelihood_in_place_of_its_logarithm_is_seen(monkeypatch):
    monkeypatch.setattr(module, "compare", compared(0.0))
    many, question = {"y": np.linspace(-1, 1, 30)}, "the likelihood of 'k' is a logarithm"

    def asked(data, function):
        return answers(sm.check({"k": sm.Model({"level": stats.norm(0, 1)}, function)}, data))[question]

    assert asked(many, likelihood()) is True
    assert asked(many, lambda p, data: np.exp(likelihood()(p, data))) is False
    # Densities above 1 are told by those that vanish beside them; a fit so good that ln L is above 0 all over is not.
    assert asked(many, lambda p, data: np.exp(100.0 + 10 * likelihood()(p, data))) is False
    assert asked({"y": np.array([0.1])}, lambda p, data: 5.0 + np.tanh(p["level"])) is True
    # One datum, and a prior within its error: ln L and L look alike, which is said and not judged.
    assert asked({"y": np.array([0.1])}, lambda p, data: 0.5 + 0.01 * np.tanh(p["level"])) is None


def test_a_prior_that_does_not_integrate_to_one_is_seen():
    class Half:
        size = 1

        def log_density_at(self, u):
            return stats.norm.logpdf(u[:, 0]) - np.log(2)

    planted = type("Planted", (), {"priors": {"a": Half()}})()
    finding = module._priors("planted", planted)
    assert finding.passed is False and "0.5" in finding.sentence


@pytest.mark.parametrize(
    ("log_bayes_factor", "level", "passes"), [(0.0, "ok", True), (0.5, "ok", False), (0.0, "fail", False)]
)
def test_a_model_against_itself_must_give_nothing(monkeypatch, log_bayes_factor, level, passes):
    monkeypatch.setattr(module, "compare", compared(log_bayes_factor, level=level))
    assert (
        answers(sm.check({"nothing": models()["nothing"]}, DATA))["'nothing' against itself gives ln B = 0"] is passes
    )


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_the_order_of_the_models_must_not_matter(monkeypatch, antisymmetric):
    both = models()
    monkeypatch.setattr(module, "compare", compared(0.3, antisymmetric))
    assert module._swapped(both, DATA, 0, 0.1).passed is antisymmetric


def test_a_result_is_asked_of_the_models_that_made_it(monkeypatch):
    monkeypatch.setattr(module, "compare", compared(0.0))
    result = dataclasses.replace(made_result(), models=models(), data=DATA)
    assert answers(sm.check(result)) == answers(sm.check(models(), DATA))
    with pytest.raises(SupermodelError, match="give them"):
        sm.check(dataclasses.replace(result, models=None))
