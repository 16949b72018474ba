"""How far a job is, as people read it."""

from collections.abc import Callable
from typing import Any

import pytest

import jobq
from jobq.cli.howfar import howfar
from tests.cli.conftest import Answer


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        pytest.param({"done": 3, "total": 10, "note": "unpacking"}, "3 of 10 (30%): unpacking", id="all"),
        pytest.param({"done": 1234.5, "total": None, "note": None}, "1,234.5", id="no total"),
        pytest.param({"done": 10**15, "total": None}, "1,000,000,000,000,000", id="large"),
        pytest.param({"done": 0.1 + 0.2, "total": 1.0}, "0.3 of 1 (30%)", id="rounding"),
        pytest.param({"done": 7, "total": 5, "note": None}, "7 of 5 (100%)", id="beyond"),
        pytest.param({"done": 0, "total": 0, "note": None}, "0 of 0", id="nothing to do"),
        pytest.param(None, None, id="said nothing"),
        pytest.param([1, 2], None, id="by hand"),
        pytest.param({"done": "x"}, None, id="by hand, too"),
    ],
)
def test_what_a_handler_said_is_shown(progress: Any, text: str | None) -> None:
    """As an amount, of how much, in percent, with its note."""
    assert howfar(progress) == text


def test_list_and_show_say_how_far_a_job_is(cli: Callable[..., Answer], jobs: jobq.JobQueue) -> None:
    """The list says it of what runs, show also afterwards."""
    listed = []

    @jobs.job
    def unpack(payload: Any, job: jobq.RunningJob) -> None:
        job.progress(1, 4, "first\nbox")
        listed.append(cli("job", "list", "--db", jobs.path).out)
        job.progress(4, 4)

    made = unpack.enqueue(subject="cellar")
    jobq.Runner(jobs).drain()

    assert "cellar: 1 of 4 (25%): first\\nbox" in listed[0]
    assert "of 4" not in cli("job", "list", "--db", jobs.path).out
    assert "\nprogress      4 of 4 (100%)\n" in cli("job", "show", made.id, "--db", jobs.path).out
    shown = cli("job", "show", made.id, "--db", jobs.path, "--json").json
    assert shown["job"]["progress"] == {"done": 4, "total": 4, "note": None}
