"""The library's manners in somebody else's log."""

import subprocess
import sys

PROGRAM = """
import jobq

with jobq.open() as jobs:
    @jobs.job(max_attempts=1)
    def fails(payload, job):
        job.log.info("mine")
        job.log.warning("mine, too")
        raise ValueError("broken")

    fails.enqueue()
    assert jobq.Runner(jobs).drain().failed == 1
"""
SAYS = "import logging\nlogging.basicConfig(level='INFO', format='%(name)s %(message)s')\n"


def _run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)


def test_nothing_is_printed_in_an_unconfigured_host() -> None:
    """Not even errors: a host that wants them says so."""
    done = _run(PROGRAM)
    assert (done.stdout, done.stderr) == ("", "")


def test_nothing_is_printed_where_structlog_is_imported_and_not_configured() -> None:
    """It would print everything to standard output."""
    done = _run("import structlog\n" + PROGRAM)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_configured_standard_library_gets_one_line_for_each_attempt() -> None:
    """And what the handler says itself."""
    lines = _run(SAYS + PROGRAM).stderr.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("jobq.runtime.report ")] == ["jobq.job.failed"]
    assert sum(line.startswith("jobq.handler mine") for line in lines) == 2


def test_structlog_is_not_imported_by_the_library() -> None:
    """It costs more than jobq."""
    done = _run(PROGRAM + "import sys\nprint('structlog' in sys.modules)")
    assert done.stdout == "False\n"
