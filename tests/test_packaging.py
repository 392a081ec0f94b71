"""What a user installs: quick to import, quick to ask for help, typed, with its data, pinned without addresses."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from importlib import resources
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = (
    "jax", "jaxlib", "scipy", "matplotlib", "arviz_base", "arviz_stats", "numpyro", "blackjax", "xarray", "pandas", "emcee", "h5py",
)  # fmt: skip


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


# No file says where packages come from: not by an address, whatever its host, nor by an option of an installer. The
# colon stands apart from its slashes below so that this file does not hold what it looks for.
ADDRESS = re.compile(r"\b(?:[a-z][a-z0-9+.]*)" + r":/{2,3}(?P<host>[^\s/'\"<>)`}\\]+)", re.IGNORECASE)
OPTION = re.compile(r"--(?:extra-)?index" + r"-url|--find" + r"-links|tool\.uv\." + r"(?:sources|index)")
HOSTS = {"semver.org", "example.org", "x"}  # a reader's link, and two that lead nowhere (tests)
PIN = re.compile(r"[a-z0-9][a-z0-9-]*==[0-9][A-Za-z0-9.+!]*( ; .+)?")


def addresses(text: str) -> list[str]:
    """What a text says about where things are fetched from, save links to known hosts."""
    return OPTION.findall(text) + [hit[0] for hit in ADDRESS.finditer(text) if hit["host"] not in HOSTS]


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
    extras = project()["optional-dependencies"].values()
    names = distributions([*project()["dependencies"], *(r for extra in extras for r in extra)]) - {"supermodel-bayes"}
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names - pinned == set()


def test_no_tracked_file_holds_an_address():
    found = {}
    for path in tracked_files():
        content = path.read_bytes()
        if b"\0" not in content and (hits := addresses(content.decode("utf-8", errors="ignore"))):
            found[str(path.relative_to(ROOT))] = hits
    assert not found
    assert not [path for path in tracked_files() if path.name in {"uv.lock", "poetry.lock", "Pipfile.lock"}]


@pytest.mark.parametrize(
    "line",
    [
        "--index" + "-url x",
        "--extra-index" + "-url=x",
        "--find" + "-links wheels",
        "[[tool.uv." + "index]]",
        "url = 'https:" + "//mirror.example/numpy'",
        "HTTP:" + "//10.0.0.1:8080/",
        "file:" + "///opt/mirror",
        "git+ssh:" + "//host/package",
    ],
)
def test_an_address_is_caught(line):
    assert addresses(line)
    assert not addresses(line.replace(":/", ": /").replace("index", "").replace("--find", ""))


# -- one version, and dependencies as they are used ---------------------------------------------------------------------

TOOLS = {"docs", "lint"}  # extras for those who work on the package, not with it
# Where a distribution and its module have different names.
MODULE_OF = {"nautilus-sampler": "nautilus", "arviz-base": "arviz_base", "arviz-stats": "arviz_stats"}
COMES_WITH = {"pytensor": "pymc"}  # imported, and always installed by the other


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def distributions(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower() for requirement in requirements}


def foreign_imports() -> set[str]:
    """Top-level modules that src imports, anywhere, and that are neither ours nor Python's."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"supermodel", "supermodel_paper"}


def test_what_is_imported_is_declared_and_what_is_required_is_imported():
    core = distributions(project()["dependencies"])
    extras = project()["optional-dependencies"]
    offered = core | distributions([r for name, extra in extras.items() if "test" not in name for r in extra])
    used = {COMES_WITH.get(module, module) for module in foreign_imports()}
    assert {"jax", "pandas", "dynesty"} <= used  # the search sees what stands inside functions
    assert used - {MODULE_OF.get(name, name) for name in offered} == set()
    assert {MODULE_OF.get(name, name) for name in core} - used == set()


def test_the_lowest_versions_are_the_bounds():
    """`make test-lowest` tries what pyproject.toml promises, no more and no less."""
    extras = project()["optional-dependencies"]
    promised = [*project()["dependencies"], *(r for name, extra in extras.items() if name not in TOOLS for r in extra)]
    bounds = {f"{b[1]}=={b[2]}" for r in promised if (b := re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", r))}
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    assert {line for line in lines if not line.startswith("#")} == bounds


def test_there_is_one_version():
    version = re.search(r'^__version__ = "(.+?)"', (ROOT / "src/supermodel/__init__.py").read_text(), re.MULTILINE)[1]
    assert "version" in project()["dynamic"] and "version" not in project()
    assert re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == version
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {match[1] for page in pages for match in re.finditer(r"\bsupermodel (\d[\w.]*)", page.read_text())}
    assert shown == {version}


def test_git_ignores_no_source():
    """An ignored module is in no clone and in no wheel (hatch reads .gitignore too), yet works for its author."""
    tracked_files()  # skips outside git
    sources = [p for p in (ROOT / "src").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    names = "\0".join(str(p.relative_to(ROOT)) for p in sources)
    run = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"], cwd=ROOT, input=names, capture_output=True, text=True
    )
    assert [name for name in run.stdout.split("\0") if name] == []


# -- built, and installed where nothing else is -------------------------------------------------------------------------


def command(*words: object, cwd: Path) -> str:
    """What a command prints, free of this environment's Python paths; skipped where packages cannot be fetched."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"SUPERMODEL_CACHE": "off", "MPLBACKEND": "Agg"}
    run = subprocess.run(list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)
    if run.returncode and "No matching distribution found for hatchling" in run.stderr:
        pytest.skip("pip finds no packages here")
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


@pytest.mark.slow
def test_wheel_and_sdist_work_in_a_clean_environment(tmp_path):
    """Built from the sources, the same from the sdist as from the tree, and the demo runs from what was installed."""
    tools, clean, dist = tmp_path / "tools", tmp_path / "clean", tmp_path / "dist"
    for place in (tools, clean):
        venv.create(place, with_pip=True)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt"]
    command(tools / "bin" / "python", *pip, "hatchling", cwd=tmp_path)
    command(tools / "bin" / "hatchling", "build", "-d", dist, cwd=ROOT)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")

    again = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path / "again", sdist]
    command(tools / "bin" / "python", *again, cwd=tmp_path)
    first, second = (
        {i.filename: i.CRC for i in ZipFile(tmp_path / p / wheel.name).infolist()} for p in ("dist", "again")
    )
    assert first == second
    assert {"supermodel/py.typed", "supermodel/data/sine.csv", "supermodel_paper/__init__.py"} <= set(first)
    assert not [name for name in first if name.startswith(("tests", "docs", "benchmarks"))]

    command(clean / "bin" / "python", *pip, wheel, cwd=tmp_path)
    where = command(clean / "bin" / "python", "-c", "import supermodel; print(supermodel.__file__)", cwd=tmp_path)
    assert where.startswith(str(clean))
    printed = command(clean / "bin" / "supermodel", "demo", "--out", "report", cwd=tmp_path)
    assert "ln B(free : fixed) = 5.02" in printed and "5.0223 by quadrature" in printed
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000


def test_the_conda_recipe_asks_for_what_pyproject_asks_for():
    """Rendered as conda does, with its own words filled in; a few packages have other names there."""
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    text = (ROOT / "recipe" / "meta.yaml").read_text()
    recipe = yaml.safe_load(jinja2.Template(text, undefined=jinja2.StrictUndefined).render(environ={}, PYTHON="python"))
    assert recipe["package"]["name"] == project()["name"]
    version = re.search(r'^__version__ = "(.+?)"', (ROOT / "src" / "supermodel" / "__init__.py").read_text(), re.MULTILINE)[1]
    assert recipe["package"]["version"] == version
    asked = {line.replace(" ", "").replace("matplotlib-base", "matplotlib") for line in recipe["requirements"]["run"]}
    python = {f"python{project()['requires-python']}"}
    assert asked == {dependency.replace(" ", "") for dependency in project()["dependencies"]} | python
