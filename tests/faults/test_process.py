"""What a run leaves behind in its user's process: nothing."""

import subprocess
import sys
import textwrap

# A fresh interpreter: what is imported for the first time counts as well. Black boxes, which need no compiling.
SCRIPT = """
import os, random, signal, sys, warnings
import jax, numpy as np, scipy.stats
import supermodel as sm

def state():
    return {
        "filters of warnings": list(warnings.filters), "showwarning": warnings.showwarning, "errstate": np.geterr(),
        "jax": dict(jax.config.values), "folder": os.getcwd(), "environment": dict(os.environ), "path": list(sys.path),
        "signals": {s: signal.getsignal(s) for s in signal.valid_signals()}, "numpy's numbers": str(np.random.get_state()),
        "Python's numbers": random.getstate(), "hooks": (sys.excepthook, sys.settrace), "printing": np.get_printoptions(),
    }

def changed():
    now = state()
    return [name for name in now if now[name] != before[name]]

calls = 0
def likelihood(p, at=float("inf"), error=None):
    global calls
    calls += 1
    if calls == at:
        raise error
    return -0.5 * float(p["a"]) ** 2

def run(*, at=float("inf"), error=None, **options):
    global calls
    calls = 0
    priors = {"a": scipy.stats.norm(0, 1)}
    models = {name: sm.Model(priors, lambda p, s=s: s * likelihood(p, at, error)) for name, s in (("m", 1.0), ("n", 2.0))}
    one = sm.evidence(models["m"], max_evaluations=300, progress=True, **options)
    return sm.compare(models, max_evaluations=300, progress=False, **options)

jax.config.update("jax_enable_x64", False)
before = state()
run()
print("run", changed())
run(at=100, error=KeyboardInterrupt())
print("interrupted", changed())
try:
    run(at=50, error=KeyError("x"))
except (KeyError, sm.SupermodelError):
    print("failing", changed())
try:
    run(seed=-1)
except sm.SupermodelError:
    print("refused", changed())
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ResourceWarning)
    print("planted", changed())
"""


def test_the_users_process_is_as_it_was():
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, timeout=120)
    assert found.stdout.splitlines() == [
        *(f"{how} []" for how in ("run", "interrupted", "failing", "refused")),
        "planted ['filters of warnings']",
    ], found.stderr
