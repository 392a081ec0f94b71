"""The benchmark beside the peers: its counter, its truths, its figures and its page, without any peer."""

import importlib.util
import json
import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
if importlib.util.find_spec("benchmarks") is None:
    sys.path.insert(0, str(ROOT))

from benchmarks.fire.cube import cube  # noqa: E402
from benchmarks.fire.problem import Problem, Side  # noqa: E402
from benchmarks.peers import programs, run  # noqa: E402
from benchmarks.peers.counting import OutOfTime, Tally, counted, cpu_seconds  # noqa: E402
from benchmarks.peers.figures import cell, cells, lead  # noqa: E402
from benchmarks.peers.long_runs import by_importance  # noqa: E402
from benchmarks.peers.page import short, standing, text  # noqa: E402
from benchmarks.peers.problems import DESIGNS, LONG, Question, normals, questions  # noqa: E402
from benchmarks.peers.programs import Found, Program, answer  # noqa: E402
from benchmarks.peers.unbounded import unbounded  # noqa: E402


def square(p, xp):
    return -0.5 * xp.sum(p["b"] ** 2, axis=-1)


SIDE = Side(normals(b=(3, 1.0)), square, lambda: -1.5 * np.log(2))
PROBLEM = Problem("sine", "", {"first": SIDE, "second": replace(SIDE, log_evidence=lambda: 0.0)})


def test_every_point_is_counted_in_numpy():
    tally = Tally()
    side = counted(SIDE, tally)
    x = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(side.log_likelihood({"b": x}, np), square({"b": x}, np))
    side.log_likelihood({"b": x[0]}, np)
    assert (tally.evaluations, tally.gradients) == (5, 0)


def test_every_point_is_counted_in_compiled_code():
    import jax
    import jax.numpy as jnp

    tally = Tally()
    f = unbounded(counted(SIDE, tally))
    x = jnp.arange(15.0).reshape(5, 3)
    np.testing.assert_allclose(jax.jit(jax.vmap(f.log_likelihood))(x), square({"b": x}, np))
    assert (tally.evaluations, tally.gradients, tally.callbacks) == (5, 0, 1)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(f.log_likelihood)))(x)
    np.testing.assert_allclose(slope, -x)
    assert (tally.evaluations, tally.gradients) == (10, 5)  # a value with its gradient is one

    def step(z, _):
        return z + 0.1 * jax.grad(f.log_likelihood)(z), None

    jax.block_until_ready(jax.jit(lambda z: jax.lax.scan(step, z, None, length=7)[0])(x[1]))
    assert (tally.evaluations, tally.gradients) == (17, 12)  # and every turn of a loop


def test_time_is_over_at_the_next_call():
    tally = Tally(limit=-1.0)
    with pytest.raises(OutOfTime):
        counted(SIDE, tally).log_likelihood({"b": np.zeros(3)}, np)
    assert tally.evaluations == 1 and tally.is_late


def test_what_counting_costs_is_taken_off():
    tally = Tally(limit=5.0, per_callback=1.0, callbacks=7, began=cpu_seconds() - 10.0)
    assert tally.busy == pytest.approx(3.0, abs=0.5) and not tally.is_late
    assert replace(tally, callbacks=2).is_late


def test_waiting_is_added_and_done_if_asked():
    added, waited = Tally(latency=100.0), Tally(latency=0.02, sleeps=True)
    added.add(3)
    began = time.monotonic()
    waited.add(3)
    assert time.monotonic() - began >= 0.06
    assert added.seconds == pytest.approx(300.0, abs=1.0) and waited.seconds == pytest.approx(0.06, abs=0.05)


def answers(find, monkeypatch, **options):
    monkeypatch.setitem(programs.PROGRAMS, "dynesty", Program("dynesty", False, find, ""))
    return answer("dynesty", PROBLEM, 0, **({"seconds": 60.0} | options))


def test_an_answer_and_its_cost(monkeypatch):
    def find(problem, seed):
        f = cube(problem.sides["second"], seed)
        return Found({"second": f.log_likelihood(np.zeros(3)) - 1.0}, {"second": 0.2})

    found = answers(find, monkeypatch)
    assert (found["status"], found["evaluations"], found["claimed"]) == ("done", 1, 0.2)
    assert found["values"] == {"second": -1.0}


@pytest.mark.parametrize(
    "raised, seconds, status",
    [
        (ValueError("x"), 60.0, "failed"),
        (programs.NotAvailable("x"), 60.0, "not available"),
        (ValueError("x"), -1.0, "cut"),
    ],
)
def test_no_answer_is_told_as_what_it_is(monkeypatch, raised, seconds, status):
    def find(problem, seed):
        raise raised

    assert answers(find, monkeypatch, seconds=seconds)["status"] == status


def test_an_infinite_error_is_no_answer(monkeypatch):
    found = answers(lambda *_: Found({"second": 0.0}, {"second": math.inf}, "fail"), monkeypatch)
    assert found["status"] == "failed" and "verdict fail" in found["note"]
    json.loads(json.dumps(found), parse_constant=pytest.fail)  # and no infinity in the file


def test_evidences_are_subtracted():
    found = {"first": (3.0, 0.3), "second": (1.0, 0.4)}
    find = programs.by_evidences(lambda side, seed: found["first" if side is PROBLEM.sides["first"] else "second"])
    assert find(PROBLEM, 0)[:2] == ({"second": 2.0}, {"second": pytest.approx(0.5)})


# -- truths ------------------------------------------------------------------------------------------------------------

PUBLISHED = {
    "radiata": 8.48920,
    "eight_schools": -0.81444345,
    "stopping": 24.51898544,
    "pima": 2.6250126,
    "linear": 4.8792471984,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_truths_are_those_of_their_sources(name):
    assert questions()[name].problem.truth == pytest.approx(PUBLISHED[name], abs=3e-5)


@pytest.mark.parametrize("name", ["slow_box", "logistic_10"])
def test_long_runs_are_what_importance_sampling_gives(name):
    designs, y = DESIGNS[name]()
    (first, e1, _), (second, e2, _) = (by_importance(x, y, 20_000, 3) for x in designs)
    limit = 5 * math.hypot(e1, e2, LONG[name][1])  # 6e-7 each
    assert abs(first - second - LONG[name][0]) < limit
    assert abs(first - second - LONG[name][0] - 0.2) > limit  # planted


def test_priors_on_the_whole_line_keep_their_jacobian():
    import jax
    from scipy.stats import invgamma, norm

    f = unbounded(questions()["radiata"].problem.sides["density"])
    z = np.array([[2900.0, 150.0, 11.0], [3100.0, 210.0, 12.5]])  # intercept, slope, ln of the variance
    by_hand = norm.logpdf(z[:, 0], 3000, 1000) + norm.logpdf(z[:, 1], 185, 100)
    by_hand = by_hand + invgamma.logpdf(np.exp(z[:, 2]), 3, scale=180000) + z[:, 2]
    np.testing.assert_allclose(jax.vmap(f.log_prior)(z), by_hand, rtol=1e-6)


# -- figures and page --------------------------------------------------------------------------------------------------


def record(value=5.0222648, claimed=0.1, status="done", **more):
    cost = {"evaluations": 1000, "gradients": 0, "seconds": 2.0, "limit": 60.0, "level": "", "note": ""}
    return {"status": status, "values": {"fixed": value}, "claimed": claimed} | cost | more


def test_figures_of_a_cell():
    question = questions()["sine"]
    truth = question.problem.truth
    found = cell(question, "dynesty", [record(truth + 0.3, 0.1), record(truth - 0.1, 0.1)])
    assert found.miss == pytest.approx(math.sqrt(0.05)) and found.claimed == pytest.approx(0.1)
    assert found.merit == pytest.approx(1000 * 0.05)
    assert found.seconds_to_wanted == pytest.approx(2.0 * 5) and found.is_scaled and not found.is_wrong
    assert cell(question, "dynesty", [record(truth + 0.5, 0.1)]).is_wrong
    good = cell(question, "dynesty", [record(truth, 0.01)])
    assert good.seconds_to_wanted == 2.0 and not good.is_scaled  # nobody stopped earlier
    assert cell(question, "smc", [record(truth + 0.2, None)]).error == pytest.approx(0.2)
    assert cell(questions()["slow_box"], "smc", []).status == "not asked"


@pytest.mark.parametrize(
    "number, shown",
    [(5e-5, "< 10⁻⁴"), (0.0123, "0.012"), (7.04, "7"), (99.7, "100"), (484.0, "480"), (996.0, "1 k"), (22_900.0, "23 k"),
     (322_016.0, "320 k"), (3_161_088.0, "3.2 M"), (math.nan, "–")],
)  # fmt: skip
def test_two_digits(number, shown):
    assert short(number) == shown


def planted():
    truth = questions()["sine"].problem.truth
    runs = {
        "supermodel": record(truth, 0.01), "supermodel_black": record(truth, 0.1), "dynesty": record(truth, 0.2),
        "ultranest": record(truth + 9, 0.001), "bridge": record(truth, 0.1), "nss": record(status="cut"),
        "pocomc": record(status="failed", note="it broke"),
    }  # fmt: skip
    return {("sine", program, 0): found for program, found in runs.items()}


def test_who_is_ahead():
    row = cells(planted())["sine"]
    assert lead(row, "supermodel") == (pytest.approx(100.0), "bridge")  # not UltraNest's, which is wrong
    assert lead(row, "supermodel_black") == (pytest.approx(4.0), "dynesty")  # nor bridge, which has gradients
    told = standing(cells(planted()))
    assert "ten times ahead or more on 1 of 1 problems: sine" in told and "ahead by less on sine" in told


def test_the_page_shows_what_did_not_end():
    page = text(planted())
    (line,) = (line for line in page.splitlines() if line.startswith("| sine") and "> 60 s" in line and "81 k" in line)
    assert "| **0.1** |" in line and "81 k ✗" in line and "| failed |" in line
    assert "| pocoMC | failed: it broke |" in page and "did not end in 60 s" in page


def test_plots_are_drawn(tmp_path):
    from benchmarks.peers.plots import by_problem, draw
    from matplotlib.text import Text

    draw(cells(planted()), tmp_path)
    figure = by_problem(cells(planted()), lambda c: c.merit, "title", "label", 1e-4, False)
    words = {words.get_text() for words in figure.findobj(Text)}
    assert {"sine, 2 v 1 (the paper's)", "100 ×", "4.0 ×"} <= words  # how far ahead, with gradients and without
    assert {path.name for path in tmp_path.iterdir()} == {"peers_merit.png", "peers_seconds.png"}


def test_a_run_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "peers.jsonl"
    key = {"problem": "linear_10", "program": "dynesty", "seed": 0, "limit": 20.0}
    lines = [key | {"status": "failed"}, key | {"status": "cut"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    records = run.load(path)
    found = records["linear_10", "dynesty", 0]
    assert found["status"] == "cut"  # the later line
    assert run.is_wanted(None, 20.0, False) and run.is_wanted(found, 60.0, False)
    assert not run.is_wanted(found, 20.0, False) and run.is_wanted(found, 20.0, True)
    asked = questions()
    assert run.is_hopeless(asked["linear_30"], "dynesty", records, asked)
    assert not run.is_hopeless(asked["linear_10"], "dynesty", records, asked)
    assert not run.is_hopeless(asked["logistic_30"], "dynesty", records, asked)
    assert not run.is_hopeless(asked["linear_30"], "nautilus", records, asked)
    assert run.load(tmp_path / "none.jsonl") == {}


def test_every_problem_is_asked_of_programs_that_exist():
    for question in questions().values():
        assert isinstance(question, Question) and set(question.programs) <= set(programs.PROGRAMS)
