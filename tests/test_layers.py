"""The layers of the package: imports go down only."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import jobq

ROOT = Path(jobq.__file__).parent
EDGES = ("jobq.cli", "jobq.testing", "jobq.pytest_plugin", "jobq.examples")
#: Imported inside functions where a host asks for the extra that brings them.
EXTRAS = {"cattrs", "psycopg", "rich", "shtab"}
#: In the standard library, but not on every system.
PLATFORM = {"fcntl"}
#: Modules that are an extra as a whole, and the package that they import at their top.
WHOLE_EXTRAS = {"jobq.observe.otel": "opentelemetry", "jobq.observe.prometheus": "prometheus_client"}
#: Files that may import inside functions to keep start-up cheap.
LAZY = (
    *("jobq.cli", "jobq.pytest_plugin", "jobq.__main__", "jobq.examples", "jobq.store.sqlite.inherited"),
    *("jobq.config", "jobq.model.nearest", "jobq.doorbell"),
)


def name_of(path: Path) -> str:
    """Return the name of the module in a file."""
    parts = ["jobq", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def targets(node: ast.AST) -> Iterator[str]:
    """Return the modules that one statement imports; a name that is a module of ours counts as itself."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in MODULES else str(node.module) for name in whole)


@cache
def imports(module: str, *, top_only: bool = False) -> set[str]:
    """Return what a module imports, anywhere in it or at its top only."""
    nodes = MODULES[module].body if top_only else ast.walk(MODULES[module])
    return {target for node in nodes for target in targets(node)}


def below(name: str, *packages: str) -> bool:
    """Whether a module is one of these packages or inside one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def rank(module: str) -> int:
    """Return the layer of a module, from the bottom."""
    if below(module, *EDGES, "jobq.__main__"):
        return 6
    if below(module, "jobq.errors", "jobq.log"):
        return 0
    if module == "jobq":
        return 5
    for level, package in enumerate(("jobq.fork", "jobq.model", "jobq.store"), 1):
        if below(module, package):
            return level
    return 5 if below(module, "jobq.runtime") else 4


def offenders(module: str, *forbidden: str) -> set[str]:
    """Return what a module imports of what it must not."""
    return {name for name in imports(module) if below(name, *forbidden)}


def test_imports_go_down_only() -> None:
    """errors, log; fork; model; store; the root; runtime; the edges."""
    wrong = {
        (module, name)
        for module in MODULES
        for name in imports(module)
        if below(name, "jobq") and module != "jobq" and rank(name) > rank(module)
    }

    assert wrong == set()


def test_only_edges_import_edges() -> None:
    """Nothing in the library knows a command line, a test clock or an example."""
    wrong = {(module, name) for module in MODULES if rank(module) < 6 for name in offenders(module, *EDGES)}

    assert wrong == set()


def test_edges_do_not_import_each_other() -> None:
    """But for the demo, whose handlers are an example, and the fixtures, whose clock is for tests."""
    allowed = {"jobq.cli": ("jobq.examples",), "jobq.pytest_plugin": ("jobq.testing",), "jobq.__main__": ("jobq.cli",)}
    wrong = set()
    for module in MODULES:
        if rank(module) == 6:
            edge = ".".join(module.split(".")[:2])
            wrong |= {
                (module, name) for name in offenders(module, *EDGES) if not below(name, edge, *allowed.get(edge, ()))
            }

    assert wrong == set()


def test_runtime_never_imports_the_store() -> None:
    """It talks to the job queue."""
    runtime = [module for module in MODULES if below(module, "jobq.runtime")]
    wrong = {(module, name) for module in runtime for name in offenders(module, "jobq.store")}

    assert wrong == set()


def test_only_the_sqlite_store_imports_apsw() -> None:
    """SQL has one home, and only the store's front door names it."""
    inside = ("jobq.store.sqlite",)
    apsw = {module for module in MODULES if not below(module, *inside) and offenders(module, "apsw", "sqlite3")}
    dialect = {module for module in MODULES if not below(module, *inside) and offenders(module, *inside)}

    assert (apsw, dialect) == (set(), {"jobq.store"})


def test_model_is_pure() -> None:
    """No clock, dice, threads, logging or I/O."""
    impure = ("threading", "time", "random", "structlog", "logging", "jobq.log", "apsw", "os", "socket", "subprocess")
    wrong = {(module, name) for module in MODULES if below(module, "jobq.model") for name in offenders(module, *impure)}

    assert wrong == set()


def test_third_party_packages_are_the_three_and_the_extras() -> None:
    """apsw, attrs, and structlog through the module that the host has loaded; extras inside functions."""
    allowed = {"attrs", "apsw", "jobq"}
    top = {
        (module, name)
        for module in MODULES
        for name in imports(module, top_only=True)
        if not _standard(name) and name.split(".")[0] not in allowed
    }

    of_extras = {(module, name) for module, name in top if name.split(".")[0] == WHOLE_EXTRAS.get(module)}
    assert top - of_extras <= {("jobq.pytest_plugin", "pytest")}
    assert {module for module, _ in of_extras} == set(WHOLE_EXTRAS)


def test_modules_of_an_extra_are_imported_by_the_host_alone() -> None:
    """Nothing else in the package loads what they need."""
    wrong = {(module, name) for module in MODULES for name in offenders(module, *WHOLE_EXTRAS)}

    assert wrong == set()


def test_no_import_cycle() -> None:
    """Over imports at the top of modules."""
    edges = {module: {name for name in imports(module, top_only=True) if name in MODULES} for module in MODULES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for name in sorted(edges[module]):
                visit(name, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_import_hides_in_a_function_or_a_condition(module: str) -> None:
    """Except of an extra, of what a system may lack, and in the few files that are read before a wish is known."""
    hidden = {
        name
        for node in ast.walk(MODULES[module])
        if node not in MODULES[module].body
        for name in targets(node)
        if name.split(".")[0] not in EXTRAS | PLATFORM
    }

    assert not hidden or below(module, *LAZY)
    assert "TYPE_CHECKING" not in ast.dump(MODULES[module])


def _standard(name: str) -> bool:
    return name.split(".")[0] in sys.stdlib_module_names
