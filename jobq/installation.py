"""The job queue that a program has installed: the one singleton of the package."""

from typing import Any

_installed: Any = None


def put(jobs: Any) -> None:
    """Install a job queue, or none."""
    global _installed
    _installed = jobs


def get() -> Any:
    """Return the job queue that is installed now, or None."""
    return _installed
