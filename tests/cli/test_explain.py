"""``jobq job explain``."""

from collections.abc import Callable

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


def test_explain_prints_each_reason_with_what_helps(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A line for the job, a line a reason."""
    job_id = jobs.enqueue("mail", queue="post").id
    jobs.pause("post", who="ada", why="disk\nfull")

    lines = cli("job", "explain", job_id, "--db", jobs.path).out.splitlines()

    assert lines[0] == f"job {job_id}, kind mail, queue post: queued"
    assert lines[1].startswith("- Its queue post is paused since ")
    assert lines[1].endswith(" by ada (disk\\nfull); `jobq queue resume post`.")
    assert lines[2].startswith("- No runner is alive")


def test_explain_as_data(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Codes, sentences and numbers."""
    job_id = jobs.enqueue("mail").id

    told = cli("job", "explain", job_id, "--db", jobs.path, "--json").json

    assert (told["job_id"], told["state"]) == (job_id, "queued")
    assert [(one["code"], one["data"]) for one in told["reasons"]] == [("unserved", {"queue": "default", "runners": 0})]


def test_explain_of_an_unknown_job_is_not_found(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Exit code 3."""
    assert cli("job", "explain", 99, "--db", jobs.path).code == 3
