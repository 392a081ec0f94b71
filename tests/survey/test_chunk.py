"""A chunk in a worker: the engine's answers as rows, and trouble that stays with the one who has it."""

import pickle

import numpy as np
import pytest

import supermodel as sm
from made_result import made_result
from supermodel.survey import chunk as module
from supermodel.survey.chunk import kept, seed_of, weigh
from supermodel.survey.job import Chunk, Job, Outcome
from supermodel.verdict.verdict import Reason, worst
from survey_problems import models, none, one

OPTIONS = {"explore": "quick", "on_error": "raise"}


def job(token="t", **changed):
    return Job(**{"models": models(), "token": token, "settings": OPTIONS} | changed)


def chunk(y, lengths=None):
    y = np.asarray(y)
    return Chunk(0, np.arange(10, 10 + len(y)), tuple("abcdef"[: len(y)]), {"y": y}, lengths)


def test_an_outcome_is_what_compare_says():
    y = np.array([[0.3, -1.0, 2.0]])
    (found,) = weigh(job("as compare", seed=5), chunk(y))
    result = sm.compare(models(), {"y": y[0]}, seed=seed_of(5, 10), target_error=0.2, explore="quick", progress=False)
    estimate = result.log_bayes_factor("one", "none")
    assert found.pairs == {("one", "none"): (estimate.value, estimate.error)}
    assert found.evidences["one"] == (result.log_evidence("one").value, result.log_evidence("one").error)
    assert (found.row, found.name, found.level, found.route) == (10, "a", result.verdict.level, "engine")
    assert found.evaluations == result.evaluations["likelihood"] > 0 and found.seconds > 0


def test_padding_never_reaches_a_likelihood():
    y = np.array([[0.3, -1.0, 1e6]])
    (found,) = weigh(job("padded"), chunk(y, np.array([2])))
    data = {"y": y[0, :2]}
    assert found.pairs["one", "none"][0] == pytest.approx(one({}, data) - none({}, data), abs=1e-9)


class Compare:
    """In place of `compare`: what it was asked, and trouble where y is 7."""

    def __init__(self, error=None, heals=False, ended="target"):
        self.asked, self.error, self.heals, self.ended = [], error, heals, ended

    def __call__(self, models, data, **options):
        self.asked.append((models, data, options))
        bad = data["y"][0] == 7
        if bad and self.error is not None and not (self.heals and len(self.asked) > 1):
            raise self.error
        result = sm.estimate.Evidences(("one", "none"), np.zeros(2), np.zeros((2, 2)), True)
        return type(
            "Result", (), {
                "evidences": result, "log_evidence": result.log_evidence, "log_bayes_factor": result.log_bayes_factor,
                "settings": {"ended": self.ended}, "verdict": sm.Verdict(), "verdict_between": lambda *pair: sm.Verdict(),
                "evaluations": {"likelihood": 3},
            },
        )()  # fmt: skip


@pytest.mark.parametrize(
    "error, code", [(sm.SupermodelError("no"), "model"), (KeyError("x"), "model"), (MemoryError(), "worker")]
)
def test_what_raises_is_tried_again_then_flagged_and_stops_nobody(error, code, monkeypatch):
    stand_in = Compare(error)
    monkeypatch.setattr(module, "compare", stand_in)
    found = weigh(job(f"raises {code}"), chunk([[1.0], [7.0], [2.0]]))
    assert [o.level for o in found] == ["ok", "fail", "ok"] and len(stand_in.asked) == 4
    assert found[1].codes == (code,) and type(error).__name__ in found[1].reason and found[1].pairs == {}


def test_trouble_that_passes_leaves_no_trace(monkeypatch):
    monkeypatch.setattr(module, "compare", Compare(OSError("network"), heals=True))
    assert [o.level for o in weigh(job("heals"), chunk([[7.0]]))] == ["ok"]


def test_half_an_answer_is_none(monkeypatch):
    monkeypatch.setattr(module, "compare", Compare(ended="interrupted"))
    with pytest.raises(KeyboardInterrupt):
        weigh(job("interrupted"), chunk([[1.0]]))


def test_a_comparison_tells_of_each_pair_what_is_of_it():
    missed = Reason("looks_disagree", "the looks at c did not meet.", models=("curve",))
    late = Reason("interrupted", "stopped.")
    models = {"line": "ab", "curve": "abc", "flat": "a"}
    result = made_result(models=models, verdict=worst([("fail", missed), ("caution", late)]))
    found = module.outcome(0, "a", tuple(models), result, 1.0)
    assert found.level == "fail" and found.codes == ("looks_disagree", "interrupted")
    assert found.scopes == {("line", "flat"): ("caution", ("interrupted",), "stopped.")}
    assert not module.outcome(0, "a", tuple(models), made_result(models=models), 1.0).scopes


def test_seeds_follow_from_the_row_alone(monkeypatch):
    stand_in = Compare()
    monkeypatch.setattr(module, "compare", stand_in)
    weigh(job("seeds", seed=3), chunk([[1.0], [2.0]]))
    seeds = [options["seed"] for _, _, options in stand_in.asked]
    assert seeds == [seed_of(3, 10), seed_of(3, 11)] and len({*seeds, seed_of(4, 10)}) == 3


def test_a_worker_uses_the_models_that_it_met_first_and_forgets_old_jobs():
    first = job("kept")
    again = pickle.loads(pickle.dumps(first))
    assert kept(first)[0] is first and kept(again)[0] is first
    for i in range(module.KEPT):
        kept(job(f"other {i}"))
    assert kept(again)[0] is again and len(module._jobs) <= module.KEPT


def test_what_the_quick_road_settles_needs_no_engine(monkeypatch):
    stand_in = Compare()
    monkeypatch.setattr(module, "compare", stand_in)
    settled = Outcome(10, "a", {}, {}, route="quick")
    monkeypatch.setattr(module, "quick", lambda job, chunk: [settled, None])
    found = weigh(job("quick"), chunk([[1.0], [2.0]]))
    assert found[0] is settled and found[1].route == "engine" and len(stand_in.asked) == 1


def test_a_quick_road_that_fails_costs_no_row(monkeypatch, caplog):
    monkeypatch.setattr(module, "compare", Compare())

    def broken(job, chunk):
        raise FloatingPointError("planted")

    monkeypatch.setattr(module, "quick", broken)
    assert [o.route for o in weigh(job("broken"), chunk([[1.0], [2.0]]))] == ["engine", "engine"]
    assert "planted" in caplog.text


def test_padded_data_go_to_models_that_can_leave_padding_out(monkeypatch):
    stand_in, mine = Compare(), sm.Model({}, none)
    monkeypatch.setattr(module, "compare", stand_in)
    monkeypatch.setattr(module, "masked", lambda model: mine)
    weigh(job("masked"), chunk([[1.0, 2.0]], np.array([1])))
    used, data, _ = stand_in.asked[0]
    assert used == {"one": mine, "none": mine} and data["length"] == 1 and np.array_equal(data["y"], [1.0, 2.0])
