"""``jobq job retriage`` and ``jobq heal``."""

from collections.abc import Callable

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


def test_retriage_says_what_it_forgot_and_requeued(cli: Cli, jobs: jobq.JobQueue) -> None:
    """As the actor user; a job that succeeded is refused, exit code 4."""
    jobs.job(name="sort", intake=True)(lambda payload: None)
    done, waiting = jobs.enqueue("sort", subject="order:7"), jobs.enqueue("sort", subject="order:7")
    jobs.complete(jobs.lease("sort", worker="w")[0])
    jobs.labels.set("order:7", "queue", "mill")

    answer = cli("job", "retriage", "order:7", "--db", jobs.path)

    assert (answer.code, answer.out) == (4, f"label queue=mill forgotten\njob {waiting.id} requeued\n")
    assert f"job {done.id} refused: succeeded" in answer.err
    assert jobs.changes(subject="order:7")[0].actor == "user"
    assert cli("changes", "--subject", "order:7", "--db", jobs.path, "--json").json[0]["what"] == "retriaged"


def test_retriage_of_an_unknown_subject_is_not_found(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A mistyped subject must not look like a success."""
    answer = cli("job", "retriage", "order:8", "--db", jobs.path)

    assert answer.code == 3
    assert "'order:8' has no machine label and no intake job" in answer.err


def test_heal_says_what_healed_and_what_is_left(cli: Cli, jobs: jobq.JobQueue) -> None:
    """In words and as data."""
    jobs.enqueue("call")
    jobs.fail(jobs.lease("call", worker="w")[0], "never", permanent=True)

    people = cli("heal", "--db", jobs.path)
    programs = cli("heal", "--db", jobs.path, "--json")

    assert people.out == "0 healed; 1 failed are left, of which 1 are unrecoverable\n"
    assert programs.json == {"ids": [], "failed": 1, "unrecoverable": 1}
