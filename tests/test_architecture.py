"""The house rules that a machine can check: who imports whom, names, sizes, and what is never called.

Data flows one way, from models to answers, and so do imports: a module may import its own package and what stands to
its left in FLOW, never what stands to its right. An import inside a function counts like any other, without exception;
one under `if TYPE_CHECKING:` does not, since it never runs. The report stands to the left of the results, for it draws
what it is given: a result that shows itself imports the report, never the other way round.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "src" / "supermodel"
PAPER = TESTS.parent / "src" / "supermodel_paper"  # the reproduction: it may import anything of the package

# Left to right.
FLOW = (
    *("errors", "options", "jax_scope", "exact", "models", "embedding", "sampling", "estimation", "verdict"),
    *("report", "results", "engine", "comparing", "counting", "agreement", "regressions", "trust", "survey"),
    *("doors", "cobaya", "spec", "shell"),
)
RANK = {name: rank for rank, name in enumerate(FLOW)} | {"__main__": len(FLOW)}

# Narrower than FLOW: these import nothing of ours but what is listed (and exact its own package).
ONLY = {
    "exact": {"exact", "errors"},  # the ground truth must not depend on what it judges
    "estimation.by_alpha.precision": {"exact", "errors"},  # closed laws of precision: a planner needs no draws
}

# The package itself (`import supermodel`) gathers everything: only those at the right end may lean on it.
MAY_IMPORT_ROOT = {"spec", "shell", "__main__"}

BANNED_NAMES = {"utils", "util", "helpers", "helper", "base", "core", "misc", "common"}
BANNED_IMPORTS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
BANNED_CALLS = {"eval", "exec", "compile", "__import__"}
MAX_LINES = 500
MAY_PLOT = {"report"}


class Import(NamedTuple):
    target: str  # full dotted name
    line: int


def modules(package: Path) -> dict[str, Path]:
    """{"estimation.mbar": path}; the package's own __init__ is the empty name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def imports(tree: ast.Module, package: str = "") -> Iterator[Import]:
    """Every import that can run. `package` is the dotted home of relative imports."""

    def walk(node: ast.AST) -> Iterator[Import]:
        if isinstance(node, ast.If) and is_type_checking(node.test):
            for child in node.orelse:
                yield from walk(child)
            return
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            home = parts[: len(parts) - node.level + 1] if node.level else []
            source = ".".join([*home, *([node.module] if node.module else [])])
            yield from (Import(f"{source}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
            target = node.args[0] if node.args else None
            if isinstance(target, ast.Constant) and isinstance(target.value, str):
                yield Import(target.value, node.lineno)
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    yield from walk(tree)


def home_of(module: str, path: Path) -> str:
    """The dotted package against which the relative imports of a module are resolved."""
    full = f"supermodel.{module}".rstrip(".")
    return full if path.stem == "__init__" else full.rpartition(".")[0]


def wrong_imports(package: Path) -> list[str]:
    """Sentences, one for each import that goes against the flow."""
    faults = []
    for module, path in modules(package).items():
        if module == "":
            continue  # the public surface: it gathers from everywhere and holds no logic
        own = module.split(".")[0]
        if own not in RANK:
            faults.append(f"{module}: has no place in FLOW; say in tests/test_architecture.py what it may import")
            continue
        only = next((allowed for name, allowed in ONLY.items() if f"{module}.".startswith(f"{name}.")), None)
        for target, line in imports(ast.parse(path.read_text()), home_of(module, path)):
            parts = target.split(".")
            if parts[0] != "supermodel" or parts[1:] == ["__version__"]:
                continue
            where = f"{module}, line {line}: "
            other = parts[1] if len(parts) > 1 else ""
            if other not in RANK:
                if own not in MAY_IMPORT_ROOT:
                    faults.append(f"{where}takes {other or 'supermodel'!r} from the package itself; name its module")
            elif only is not None and other not in only:
                faults.append(f"{where}imports {other}, but may import only {', '.join(sorted(only))}")
            elif RANK[other] > RANK[own]:
                faults.append(f"{where}imports {other}, which stands to the right of {own}")
    return faults


def wrong_names(package: Path) -> list[str]:
    return [name for name in modules(package) if BANNED_NAMES & {part.strip("_") for part in name.split(".")}]


def long_modules(package: Path) -> list[str]:
    sizes = {name: len(path.read_text().splitlines()) for name, path in modules(package).items()}
    return [f"{name}: {size} lines" for name, size in sizes.items() if size > MAX_LINES]


def unsafe_code(package: Path) -> list[str]:
    """Anything that could run what a file says: pickles, and Python evaluated from text."""
    faults = []
    for name, path in modules(package).items():
        tree = ast.parse(path.read_text())
        for found in imports(tree):
            if found.target.split(".")[0] in BANNED_IMPORTS:
                faults.append(f"{name}, line {found.line}: imports {found.target}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                if ast.unparse(node.func).removeprefix("builtins.") in BANNED_CALLS:
                    faults.append(f"{name}, line {node.lineno}: calls {ast.unparse(node.func)}")
                for keyword in node.keywords:
                    if keyword.arg == "allow_pickle" and getattr(keyword.value, "value", True) is not False:
                        faults.append(f"{name}, line {node.lineno}: allow_pickle")
    return faults


def stray_plots(package: Path) -> list[str]:
    return [
        f"{name}, line {found.line}: imports {found.target}"
        for name, path in modules(package).items()
        if name.split(".")[0] not in MAY_PLOT
        for found in imports(ast.parse(path.read_text()))
        if found.target.split(".")[0] in {"matplotlib", "mpl_toolkits"}
    ]


def stray_paper(package: Path) -> list[str]:
    """The reproduction of the paper is a guest: only its command knows it, and only when called."""
    faults = []
    for name, path in modules(package).items():
        tree = ast.parse(path.read_text())
        if name == "shell.cli":
            tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        met = (found for found in imports(tree) if found.target.split(".")[0] == "supermodel_paper")
        faults += [f"{name}, line {found.line}: imports {found.target}" for found in met]
    return faults


RULES = (wrong_imports, wrong_names, long_modules, unsafe_code, stray_plots, stray_paper)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule):
    assert modules(PACKAGE), f"no modules found under {PACKAGE}: this test would pass on nothing"
    faults = rule(PACKAGE)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("rule", [wrong_names, long_modules, unsafe_code], ids=lambda rule: rule.__name__)
def test_the_reproduction_keeps_the_rule(rule):
    assert len(modules(PAPER)) > 10
    assert rule(PAPER) == []


# Negative controls: each plants one fault in a small tree, and the named rule must see it.
PLANTED = {
    "to the right": (wrong_imports, "models/model.py", "from supermodel.embedding import mixture"),
    "as a module": (wrong_imports, "models/model.py", "import supermodel.report.text"),
    "from the package": (wrong_imports, "sampling/run.py", "from supermodel import estimation"),
    "relative": (wrong_imports, "sampling/run.py", "from ..estimation import shares"),
    "relative, bare": (wrong_imports, "sampling/run.py", "from .. import results"),
    "in __init__": (wrong_imports, "sampling/__init__.py", "from ..estimation import shares"),
    "in a function": (wrong_imports, "models/model.py", "def f():\n    from supermodel.comparing import compare"),
    "by name": (
        wrong_imports,
        "models/model.py",
        "import importlib\ndef f():\n    importlib.import_module('supermodel.results.comparison')",
    ),
    "after TYPE_CHECKING": (
        wrong_imports,
        "models/model.py",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import supermodel.shell.cli",
    ),
    "report to results": (wrong_imports, "report/text.py", "from supermodel.results.words import interpret"),
    "report to results, in a function": (
        wrong_imports,
        "report/plots.py",
        "def f():\n    from supermodel.results import ranking",
    ),
    "results to trust, in a method": (
        wrong_imports,
        "results/comparison.py",
        "class A:\n    def check(self):\n        from supermodel.trust.check import check",
    ),
    "results to the front door": (wrong_imports, "results/words.py", "def f():\n    import supermodel.comparing"),
    "exact to models": (wrong_imports, "exact/linear.py", "from supermodel.models import priors"),
    "precision to draws": (
        wrong_imports,
        "estimation/by_alpha/precision.py",
        "from supermodel.sampling.draws import Draws",
    ),
    "the package itself": (wrong_imports, "estimation/shares.py", "from supermodel import compare_everything"),
    "no place": (wrong_imports, "toolbox.py", ""),
    "a name": (wrong_names, "models/utils.py", ""),
    "a private name": (wrong_names, "_helpers/__init__.py", ""),
    "length": (long_modules, "models/model.py", "x = 1\n" * (MAX_LINES + 1)),
    "pickle": (unsafe_code, "sampling/checkpoint.py", "def f():\n    import pickle"),
    "eval": (unsafe_code, "spec/toml.py", "eval('1')"),
    "builtins.exec": (unsafe_code, "spec/toml.py", "import builtins\nbuiltins.exec('1')"),
    "numpy pickles": (unsafe_code, "results/archive.py", "np.load(path, allow_pickle=True)"),
    "the paper": (stray_paper, "results/comparison.py", "def f():\n    from supermodel_paper import page"),
    "the paper, at once": (stray_paper, "shell/cli.py", "import supermodel_paper.reproduce"),
    "matplotlib": (stray_plots, "results/comparison.py", "def f():\n    import matplotlib.pyplot as plt"),
}
ALLOWED = {
    "errors.py": "class SupermodelError(ValueError): ...",
    "models/model.py": "from supermodel.errors import SupermodelError\nfrom . import priors",
    "models/space.py": "if TYPE_CHECKING:\n    from supermodel.results.comparison import Comparison",
    "estimation/shares.py": "from supermodel.sampling.draws import Draws\nfrom ..exact import linear",
    "results/comparison.py": "from supermodel import __version__\ndef report(self):\n    from supermodel.report import html",
    "comparing.py": "from supermodel.engine import loop\nf = jit(g).lower().compile()",
    "engine/loop.py": "np.load(path, allow_pickle=False)",
    "report/plots.py": "import matplotlib.pyplot as plt",
    "shell/cli.py": "import supermodel\nfrom supermodel.spec.toml import read\ndef f():\n    import supermodel_paper",
    "__init__.py": "from supermodel.shell.cli import main",
}


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(("rule", "name", "text"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_fault_is_caught(rule, name, text, tmp_path):
    assert len(rule(plant(tmp_path, {**ALLOWED, name: text}))) == 1


def test_what_is_allowed_passes(tmp_path):
    plant(tmp_path, ALLOWED)
    assert [fault for rule in RULES for fault in rule(tmp_path)] == []


def test_no_test_helper_hides_a_module_of_the_standard_library():
    """`tests/` is on the path: a tests/statistics.py would be imported in place of Python's own by any library."""
    assert [path.name for path in TESTS.glob("*.py") if path.stem in sys.stdlib_module_names] == []
