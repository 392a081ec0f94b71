"""Nothing leaves the machine: a whole comparison, stored and loaded, asks the network for nothing."""

import subprocess
import sys

# An audit hook hears every socket that Python code of any library uses. Black boxes, which need no compiling.
SCRIPT = """
import socket, sys
asked = []
sys.addaudithook(lambda event, arguments: asked.append(event) if event.startswith("socket.") else None)
import scipy.stats
import supermodel as sm

prior = scipy.stats.norm(0, 1)
models = {name: sm.Model({"a": prior}, lambda p, s=s: -s * float(p["a"]) ** 2) for name, s in (("m", 0.5), ("n", 1.0))}
sm.compare(models, max_evaluations=400, explore="quick", progress=False, checkpoint="run.ckpt").save("run.nc")
print(sm.load("run.nc").verdict.level, file=sys.stderr)
print("asked", [event for event in asked if event not in ("socket.__new__", "socket.gethostname")])
try:
    socket.create_connection(("127.0.0.1", 9), timeout=0.1)
except OSError:
    pass
print("planted", sorted({event for event in asked if event in ("socket.getaddrinfo", "socket.connect")}))
"""


def test_a_comparison_asks_the_network_for_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["asked []", "planted ['socket.connect', 'socket.getaddrinfo']"]
