"""A witness that nothing is run: Python tells it whenever source is compiled, code executed or a process started."""

import contextlib
import sys

WATCHED = {"compile", "exec", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "import"}
_state = {"on": False, "seen": []}


def _hook(event, args):
    if _state["on"] and event in WATCHED:
        _state["seen"].append((event, args))


sys.addaudithook(_hook)  # cannot be taken away again, so it sleeps between uses


@contextlib.contextmanager
def nothing_runs():
    """Fails if anything was compiled, executed, imported or started inside."""
    _state["on"], _state["seen"] = True, []
    try:
        yield
    finally:
        _state["on"] = False
    assert not _state["seen"], f"code was run: {_state['seen'][:3]}"


ATTACKS = [
    '__import__("os").system("touch canary")',
    "().__class__.__bases__[0].__subclasses__()",
    'exec(\'open("canary", "w")\')',
    "eval(x)",
    "open(canary)",
    "lambda: x",
    "[x for x in y]",
    "x if y else z",
    "x; import os",
    "x\nimport os",
    "{{config}}",
    "$(touch canary)",
    "`touch canary`",
    "${jndi:ldap://x}",
    "f'{x}'",
    "x := 1",
    "breakpoint()",
    "sin.__globals__",
    "x @ x",
    "compile(x, x, x)",
]
