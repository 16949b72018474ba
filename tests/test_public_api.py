"""The names at the top of the package."""

import inspect
import subprocess
import sys
from types import ModuleType

import jobq


def test_all_is_sorted_and_complete() -> None:
    """Every public name of the package is listed once, in order."""
    public = {name for name in vars(jobq) if not name.startswith("_") and not isinstance(vars(jobq)[name], ModuleType)}

    # Constants first, as linters want it.
    assert jobq.__all__ == sorted(jobq.__all__, key=lambda name: (not name.isupper(), name))
    assert set(jobq.__all__) == public
    assert len(jobq.__all__) == len(public)


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


def test_import_is_cheap() -> None:
    """What costs much is loaded when it is needed."""
    heavy = "structlog", "cattrs", "rich", "argparse", "asyncio", "sqlite3", "multiprocessing", "apsw.ext"
    script = f"import sys, jobq; print(*[name for name in {heavy!r} if name in sys.modules])"

    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert found.stdout.strip() == ""
