"""What every command does with its output."""

import subprocess
import sys
from pathlib import Path

import pytest

import jobq
from tests.cli.conftest import ROOT

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [("stats",), ("stats", "--json"), ("job", "list", "--json")])
def test_output_that_cannot_be_written_is_one_line(jobs: jobq.JobQueue, arguments: tuple[str, ...]) -> None:
    """A full disk behind standard output is exit code 1 and a sentence, no traceback."""
    command = [sys.executable, "-m", "jobq", "--db", jobs.path, *arguments]
    with FULL.open("w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)

    assert done.returncode == 1
    assert done.stderr == "error: writing the output, or reading the input: No space left on device\n"
