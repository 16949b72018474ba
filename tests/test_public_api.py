"""The names at the top of the package."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import jobq
import jobq.errors

#: What costs much is loaded when it is needed.
HEAVY = {
    *("structlog", "cattrs", "rich", "argparse", "asyncio", "sqlite3", "multiprocessing", "apsw.ext"),
    *("opentelemetry", "prometheus_client", "tomllib"),
}


ROOT = Path(jobq.__file__).parent


def stub() -> dict[str, str]:
    """Return what type checkers read: each name, and the module that it is imported from."""
    tree = ast.parse((ROOT / "__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def loaded_by(program: str) -> set[str]:
    """Return the modules that a new process has loaded after a program."""
    script = f"import sys\n{program}\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(found.stdout.split())


def test_all_is_sorted_and_complete() -> None:
    """Every public name is listed once, in order, and is found."""
    assert jobq.__all__ == sorted(set(jobq.__all__))
    assert set(jobq.__all__) <= set(dir(jobq))
    assert all(getattr(jobq, name) is not None for name in jobq.__all__)


def test_type_checkers_read_the_same_names() -> None:
    """The table of ``__init__.py`` and the imports of ``__init__.pyi`` agree, as do the two lists of names."""
    (names,) = [
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "__init__.pyi").read_text()).body
        if isinstance(node, ast.Assign)
    ]

    assert stub() == jobq._HOME
    # Constants first, as linters want it.
    assert names == sorted(jobq.__all__, key=lambda name: (not name.isupper(), name))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="Sausage"):
        jobq.Sausage  # noqa: B018


def test_names_of_the_contract_are_there() -> None:
    """What the documentation's first page uses."""
    wanted = {
        "ArgumentError", "Config", "Deferred", "Event", "Handlers", "JobCancelled", "JobState", "JobStateChanged",
        "LeaseLost", "NewJob", "PermanentJobError", "Priority", "RetryPolicy", "Runner", "RunningJob", "open",
    }  # fmt: skip

    assert wanted <= set(jobq.__all__)
    assert "FakeClock" not in jobq.__all__


def test_every_exported_name_is_documented() -> None:
    """With a docstring of its own, where it can have one."""
    bare = {name for name in jobq.__all__ if not inspect.getdoc(getattr(jobq, name))} - {"Codec", "PRIVATE"}

    assert bare == set()


def test_every_error_is_exported() -> None:
    """A program catches errors by their names at the top."""
    classes = {name: value for name, value in vars(jobq.errors).items() if inspect.isclass(value)}
    errors = {name for name, value in classes.items() if issubclass(value, BaseException)}

    assert errors <= set(jobq.__all__)


def test_import_loads_nothing_of_ours_and_nothing_heavy() -> None:
    """A name is loaded when it is first used: the import costs next to nothing, whatever the package grows to."""
    loaded = loaded_by("import jobq")

    assert {name for name in loaded if name.split(".")[0] == "jobq"} == {"jobq"}
    assert not loaded & HEAVY
    assert not loaded & {"apsw", "attr", "threading"}


def test_who_only_enqueues_does_not_load_what_runs_jobs() -> None:
    """No threads of a runner, no command line, no test clock, and nothing of what is heavy or rarely used."""
    program = "import jobq\nwith jobq.open() as jobs:\n    jobs.enqueue('note', {'to': 'ada'})"
    loaded = loaded_by(program)

    assert not {name for name in loaded if name.startswith(("jobq.runtime", "jobq.cli", "jobq.testing"))}
    assert not loaded & HEAVY
