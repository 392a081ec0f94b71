"""Ctrl-C at every phase: an answer at once, and with a checkpoint the bits of a run that was never stopped."""

import json
import os
import signal
import threading

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from supermodel.engine import interrupts
from supermodel.engine.edge import Edge
from supermodel.engine.goals import Goals
from supermodel.engine.policy import BATCH
from supermodel.engine.run import Run

OPTIONS = {"seed": 3, "target_error": 0.008, "explore": "quick", "progress": False}


def ctrl_c(times=1):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


class Asked:
    """Two black boxes of which `at_call` hears the number of each call, in batches."""

    def __init__(self, at_call=lambda n: None):
        self.calls, self.at_call = 0, at_call
        self.models = {
            name: sm.Model({"mu": stats.norm(0, width)}, self.likelihood, vectorized=True)
            for name, width in {"wide": 3, "narrow": 1}.items()
        }

    def likelihood(self, p):
        self.calls += 1
        self.at_call(self.calls)
        mu = np.asarray(p["mu"])
        return -0.5 * ((0.7 - mu) / 0.5) ** 2 - 0.1 * np.abs(mu) ** 3


def bits(result):
    draws = [edge.log_joints.tobytes() for edge in result.edges]
    return result.evidences.values.tolist(), result.evidences.covariance.tolist(), result.evaluations, draws


def codes(result):
    return {reason.code for reason in result.verdict.reasons}


@pytest.fixture(scope="module")
def whole():
    return sm.compare(Asked().models, **OPTIONS)


@pytest.fixture(scope="module")
def phases():
    """The numbers of the first call of each phase, and of the last call."""
    problem, first = Asked(), {}
    run = Run(problem.models, None, OPTIONS["seed"], goals=Goals(target_error=OPTIONS["target_error"]), explore="quick")

    def mark(run):
        sampled = any(arm.edge.blocks for arm in run.arms)
        phase = "blocks" if sampled else "ladder" if run.arms else f"{len(run.pilots)} explored"
        first.setdefault(phase, problem.calls + 1)

    run.keep = mark
    run.prepare()
    run.loop()
    return first | {"end": problem.calls}


PHASES = ["0 explored", "1 explored", "2 explored", "ladder", "blocks"]  # from the third on: the tree and its warm-up


@pytest.mark.parametrize(
    "phase, times", [*((phase, 1) for phase in PHASES), ("1 explored", 2), ("2 explored", 2), ("blocks", 2)]
)
def test_interrupted_and_resumed_equals_uninterrupted_to_the_bit(phase, times, phases, whole, tmp_path):
    assert list(phases) == [*PHASES, "end"]
    call = (phases[phase] + list(phases.values())[PHASES.index(phase) + 1]) // 2
    problem = Asked(lambda n: ctrl_c(times) if n == call else None)
    part = sm.compare(problem.models, checkpoint=tmp_path / "run.nc", **OPTIONS)
    assert part.settings["ended"] == "interrupted" and "interrupted" in codes(part)
    assert bits(sm.compare(Asked().models, checkpoint=tmp_path / "run.nc", **OPTIONS)) == bits(whole)


def test_of_an_addition_only_the_block_that_was_cut_short_is_lost(phases, whole, tmp_path):
    """A third of all blocks are added between two looks: with a slow likelihood, hours."""
    path, call = tmp_path / "run.nc", phases["end"] - 3
    sm.compare(Asked(lambda n: ctrl_c() if n == call else None).models, checkpoint=path, **OPTIONS)
    rest = Asked()
    assert bits(sm.compare(rest.models, checkpoint=path, **OPTIONS)) == bits(whole)
    assert rest.calls < 60  # a block is 16 calls of each model; the rest are the points at which models are tried


def test_a_traced_run_too(tmp_path, monkeypatch):
    model = sm.Model({"x": dist.Normal(0, 1)}, lambda p: -0.5 * (p["x"] - 0.5) ** 2 - 0.3 * jnp.abs(p["x"]) ** 3)
    options = {"seed": 1, "target_error": 0.001, "explore": "quick", "progress": False}
    straight = sm.evidence(model, **options)
    advance, blocks = Edge.advance, []

    def stopped(edge, *given):
        blocks.append(given)
        if len(blocks) == 5:
            ctrl_c()
        return advance(edge, *given)

    monkeypatch.setattr(Edge, "advance", stopped)
    part = sm.evidence(model, checkpoint=tmp_path / "run.nc", **options)
    assert part.settings["ended"] == "interrupted"
    resumed = sm.evidence(model, checkpoint=tmp_path / "run.nc", **options)
    assert len(blocks) > 6 and bits(resumed) == bits(straight)


# -- at once, and nothing left behind ---------------------------------------------------------------------------------


@pytest.mark.parametrize("times, more", [(1, BATCH), (2, 0)])
def test_the_first_ends_before_the_next_batch_and_the_second_at_once(times, more):
    """A likelihood of one point a call: the batch is finished, or not even that."""
    calls = []

    def likelihood(p):
        calls.append(float(p["mu"]))
        if len(calls) == 200:
            ctrl_c(times)
        return -0.5 * (0.7 - calls[-1]) ** 2

    result = sm.evidence(sm.Model({"mu": stats.norm(0, 3)}, likelihood), **OPTIONS)
    assert 200 <= len(calls) <= 200 + more and result.settings["ended"] == "interrupted"


def test_the_handler_is_python_s_own_again(phases):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    sm.compare(Asked(lambda n: ctrl_c() if n == phases["blocks"] else None).models, **OPTIONS)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        sm.compare(Asked(lambda n: ctrl_c() if n == 1 else None).models, **OPTIONS)  # nothing to tell yet
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_user_stays_and_is_called(whole):
    heard = []
    signal.signal(signal.SIGINT, lambda *given: heard.append(given))
    try:
        result = sm.compare(Asked(lambda n: ctrl_c() if n == 20 else None).models, **OPTIONS)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert len(heard) == 1 and bits(result) == bits(whole)


def test_outside_the_main_thread_nothing_is_installed(whole):
    found, handlers = [], []
    asked = Asked(lambda n: handlers.append(signal.getsignal(signal.SIGINT)) if n == 20 else None)
    thread = threading.Thread(target=lambda: found.append(sm.compare(asked.models, **OPTIONS)))
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler] and bits(found[0]) == bits(whole)


def test_one_press_leaves_a_loop_over_comparisons(monkeypatch, phases):
    monkeypatch.setattr(interrupts, "_statement", lambda: "script")
    begun, answers = [], []

    def loop():
        for star in range(5):
            begun.append(star)
            problem = Asked(lambda n: ctrl_c() if len(begun) == 2 and n == phases["blocks"] else None)
            answers.append(sm.compare(problem.models, **OPTIONS))

    with pytest.raises(KeyboardInterrupt, match="this one is not begun"):
        loop()
    assert begun == [0, 1, 2] and [a.settings["ended"] for a in answers] == ["target", "interrupted"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    loop()  # who catches it goes on
    assert begun[3:] == [0, 1, 2, 3, 4]


def test_in_another_cell_the_next_comparison_begins(monkeypatch, phases):
    cells = iter(range(10))
    monkeypatch.setattr(interrupts, "_statement", lambda: ("cell", next(cells)))
    part = sm.compare(Asked(lambda n: ctrl_c() if n == phases["blocks"] else None).models, **OPTIONS)
    assert part.settings["ended"] == "interrupted"
    assert sm.compare(Asked().models, **OPTIONS).settings["ended"] == "target"


@pytest.mark.parametrize("phase", ["0 explored", "blocks"])
def test_an_interrupted_run_says_how_it_goes_on(phase, phases, tmp_path):
    def stopped(**options):
        problem = Asked(lambda n: ctrl_c() if n == phases[phase] + 1 else None)
        return {r.code: r.sentence for r in sm.compare(problem.models, **OPTIONS, **options).verdict.reasons}[
            "interrupted"
        ]

    assert "With `checkpoint` the same call would go on from here." in stopped()
    assert "The same call, with the same checkpoint, goes on from here." in stopped(checkpoint=tmp_path / "run.nc")


def test_before_anything_is_weighed_nothing_is_shown_as_a_number(phases):
    result = sm.compare(Asked(lambda n: ctrl_c() if n == phases["0 explored"] + 1 else None).models, **OPTIONS)
    assert result.verdict.level == "fail" and np.isnan(result.log_evidence("wide").value)
    shown = str(result)
    assert "unknown" in shown and "0.000" not in shown and json.loads(result.to_json())
