"""What a user installs: quick to import, quick to ask for help, typed, with its data, pinned without addresses."""

import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("jax", "jaxlib", "scipy", "matplotlib", "arviz", "numpyro", "blackjax", "xarray", "pandas", "emcee", "h5py")


def python(*args: str) -> str:
    run = subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after the statement."""
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    return set(json.loads(python("-c", code).splitlines()[-1]))


def test_import_loads_nothing_heavy():
    assert not loaded_by("import supermodel") & set(HEAVY)


def test_the_check_for_heavy_modules_sees_them():
    assert "matplotlib" in loaded_by("import matplotlib")


def test_help_answers_at_once_and_loads_nothing_heavy():
    statement = (
        "from supermodel.shell.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code"
    )
    assert not loaded_by(statement) & set(HEAVY)


def test_module_and_console_script_show_the_same_help():
    script = Path(sys.executable).parent / "supermodel"
    assert script.exists(), "the console script is not installed: pip install -e ."
    seconds = []
    for _ in range(3):  # the quickest of three: other work on the machine must not fail the test
        start = time.perf_counter()
        shown = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=120, check=True).stdout
        seconds.append(time.perf_counter() - start)
    assert "usage: supermodel" in shown
    assert python("-m", "supermodel.shell.cli", "--help") == shown
    assert min(seconds) < 2


def test_typing_marker_and_data_are_in_the_package():
    package = resources.files("supermodel")
    assert (package / "py.typed").is_file()
    for name in ("linear.csv", "sine.csv"):
        assert (package / "data" / name).read_text().startswith("x,y,sigma\n")


# The scheme is written apart from its host so that this file does not hold what it looks for.
ADDRESSES = re.compile(
    r"(?:https?|file)" + r"://[^\s'\"<>]*/simple\b|pythonhosted" + r"\.org|--(?:extra-)?index" + r"-url"
    r"|--find" + r"-links|tool\.uv\." + r"(?:sources|index)"
)
PIN = re.compile(r"[a-z0-9][a-z0-9-]*==[0-9][A-Za-z0-9.+!]*( ; .+)?")


def addresses(text: str) -> list[str]:
    return ADDRESSES.findall(text)


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_constraints_are_names_and_versions_only():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not PIN.fullmatch(line)] == []


def test_constraints_pin_every_direct_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    names = {re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower() for requirement in wanted} - {"supermodel"}
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names - pinned == set()


def test_no_tracked_file_names_a_package_index():
    found = {}
    for path in tracked_files():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        if hits := addresses(text):
            found[str(path.relative_to(ROOT))] = hits
    assert not found
    assert not [path for path in tracked_files() if path.name in {"uv.lock", "poetry.lock", "Pipfile.lock"}]


@pytest.mark.parametrize(
    "line",
    [
        "--index" + "-url https://wheels.example/root",
        "--extra-index" + "-url=x",
        "url = 'https" + "://mirror.example/pypi/simple/numpy'",
        "file" + ":///opt/mirror/simple",
        "https://files.pythonhosted" + ".org/packages/a.whl",
        "[[tool.uv." + "index]]",
    ],
)
def test_an_index_address_is_caught(line):
    assert addresses(line)


def test_git_ignores_no_source():
    """An ignored module is in no clone and in no wheel (hatch reads .gitignore too), yet works for its author."""
    tracked_files()  # skips outside git
    sources = [p for p in (ROOT / "src").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    names = "\0".join(str(p.relative_to(ROOT)) for p in sources)
    run = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"], cwd=ROOT, input=names, capture_output=True, text=True
    )
    assert [name for name in run.stdout.split("\0") if name] == []
