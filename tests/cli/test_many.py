"""``jobq job requeue`` and ``cancel`` by filter, the question before it, and ``jobq changes``."""

import io
from collections.abc import Callable
from typing import Any

import pytest

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


class Keyboard(io.StringIO):
    """A standard input that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def fail(jobs: jobq.JobQueue, kind: str = "mail", **options: Any) -> int:
    """Make a job that failed and return its id."""
    made = jobs.enqueue(kind, **options)
    (lease,) = jobs.lease(kind, worker="w")
    jobs.fail(lease, "no luck", code="bounced", permanent=True)
    return made.id


def test_requeue_by_filter_needs_yes_off_a_terminal(
    cli: Cli, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it nothing happens, exit code 2, and the sentence says how many there are."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    failed = [fail(jobs), fail(jobs), fail(jobs, "note")]

    refused = cli("job", "requeue", "--kind", "mail", "--db", jobs.path)
    dry = cli("job", "requeue", "--kind", "mail", "--dry-run", "--db", jobs.path)
    before = jobs.counts()["failed"]  # type: ignore[index]
    done = cli("job", "requeue", "--kind", "mail", "--state", "failed", "--yes", "--db", jobs.path, "--json")

    assert (refused.code, refused.out) == (2, "")
    assert "Requeue 2 jobs?" in refused.err
    assert "--yes" in refused.err
    assert (dry.code, dry.out, before) == (0, "2 jobs would be requeued\n", 3)
    assert done.json == {"ids": failed[:2], "refused": [], "dry_run": False}
    assert jobs.get(failed[2]).state == "failed"


@pytest.mark.parametrize(("answer", "code", "state"), [("y\n", 0, "cancelled"), ("\n", 1, "queued"), ("", 1, "queued")])
def test_cancel_by_filter_asks_on_a_terminal(
    cli: Cli, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, state: str
) -> None:
    """Only a yes is one."""
    monkeypatch.setattr("sys.stdin", Keyboard(answer))
    job_id = jobs.enqueue("mail", subject="order:7").id

    asked = cli("job", "cancel", "--subject", "order:7", "--db", jobs.path)

    assert (asked.code, jobs.get(job_id).state) == (code, state)
    assert "Cancel 1 job? [y/N]" in asked.err


def test_requeue_by_filter_moves_jobs_and_names_refusals(cli: Cli, jobs: jobq.JobQueue) -> None:
    """One whose key is taken is refused, exit code 4; the others go on into the other queue."""
    failed, clash = fail(jobs), fail(jobs, dedupe_key="k")
    jobs.enqueue("mail", queue="slow", dedupe_key="k")

    answer = cli("job", "requeue", "--reason", "bounced", "--queue", "slow", "--yes", "--db", jobs.path)

    assert (answer.code, answer.out) == (4, "1 job requeued\n")
    assert f"job {clash} refused: dedupe key held by job" in answer.err
    assert jobs.get(failed).queue == "slow"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param((), 2, "no job is named", id="nothing"),
        pytest.param(("1", "--kind", "mail"), 2, "ids and a filter", id="both"),
        pytest.param(("--kind", "mial"), 3, "unknown kind: 'mial'", id="kind"),
        pytest.param(("--in-queue", "nope"), 3, "no queue is called 'nope'", id="queue"),
        pytest.param(("--state", "done"), 2, "is not one of", id="state"),
        pytest.param(("--older-than", "soon"), 2, "soon", id="age"),
    ],
)
@pytest.mark.parametrize("verb", ["requeue", "cancel"])
def test_bad_choices_say_what_is_wrong(
    cli: Cli, jobs: jobq.JobQueue, verb: str, arguments: tuple[str, ...], code: int, says: str
) -> None:
    """Exit code 2 or 3 with a sentence, and nothing is changed."""
    job_id = jobs.enqueue("mail").id

    answer = cli("job", verb, *arguments, "--yes", "--db", jobs.path)

    assert answer.code == code
    assert says in answer.err
    assert (jobs.get(job_id).state, jobs.changes()) == ("queued", [])


def test_an_unknown_id_among_several_is_not_found(cli: Cli, jobs: jobq.JobQueue) -> None:
    """As it is alone, and for cancel; the others are dealt with."""
    job_id = fail(jobs)

    for verb, state in (("requeue", "queued"), ("cancel", "cancelled")):
        assert cli("job", verb, job_id, 99, "--db", jobs.path).code == 3
        assert jobs.get(job_id).state == state


def test_a_hidden_queue_can_be_named(cli: Cli, jobs: jobq.JobQueue) -> None:
    """It is left out of listings, and its jobs fail all the same."""
    dark = jobq.Config(queues={"dark": jobq.QueueConfig(hidden=True)})
    with jobq.open(jobs.path, config=dark) as hiding:
        job_id = hiding.enqueue("mail", queue="dark").id

    answer = cli("job", "requeue", "--in-queue", "dark", "--dry-run", "--db", jobs.path, "--json")

    assert (answer.code, answer.json["ids"]) == (0, [job_id])


def test_an_unknown_kind_comes_with_the_nearest_one(cli: Cli, jobs: jobq.JobQueue) -> None:
    """In a filter, a pause and the list of retries."""
    jobs.enqueue("mail.send")

    for command in (("job", "requeue", "--kind"), ("job", "list", "--kind"), ("kind", "pause"), ("kind", "retries")):
        answer = cli(*command, "mail.snd", "--db", jobs.path)
        assert (answer.code, answer.out) == (3, "")
        assert "fix: Did you mean mail.send?" in answer.err


def test_nothing_that_fits_is_no_error_and_not_asked_about(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A nightly script finds nothing to do on most nights."""
    jobs.enqueue("mail")

    assert cli("job", "requeue", "--state", "failed", "--db", jobs.path).out == "0 jobs requeued\n"
    assert cli("job", "cancel", "--older-than", "1d", "--db", jobs.path).code == 0


def test_cancel_of_ids_can_be_rehearsed(cli: Cli, jobs: jobq.JobQueue) -> None:
    """It says what it would do."""
    job_id = jobs.enqueue("mail").id

    answer = cli("job", "cancel", job_id, "--dry-run", "--db", jobs.path)

    assert (answer.code, answer.out) == (0, f"job {job_id} would be cancelled\n")
    assert jobs.get(job_id).state == "queued"


def test_changes_lists_what_was_done_by_hand(cli: Cli, jobs: jobq.JobQueue) -> None:
    """When, by whom, what, from and to; newest first, of all jobs or one."""
    assert "nothing was done by hand" in cli("changes", "--db", jobs.path).err
    one, two = fail(jobs), fail(jobs)
    cli("job", "requeue", one, two, "--db", jobs.path)

    shown = cli("changes", "--db", jobs.path)
    told = cli("changes", "--job", one, "--db", jobs.path, "--json")

    assert [line.split()[5] for line in shown.out.splitlines()[1:]] == [str(two), str(one)]
    assert "user" in shown.out
    assert "state=failed queue=default attempts=1" in shown.out
    (line,) = told.json
    assert (line["job_id"], line["what"], line["after"]["state"]) == (one, "requeued", "queued")


@pytest.mark.parametrize(("verb", "stage"), [("cancel", "cancelling"), ("requeue", "requeueing")])
def test_many_are_followed_by_a_bar(cli: Cli, jobs: jobq.JobQueue, verb: str, stage: str) -> None:
    """On standard error, once there is more than one transaction's work; the answer alone is on standard output."""
    options = ("--yes", "--db", jobs.path)
    for kind, count in (("few", 3), ("many", 120), ("quiet", 120)):
        jobs.enqueue_many([jobq.NewJob(kind) for _ in range(count)])

    few = cli("job", verb, "--kind", "few", *options)
    many = cli("job", verb, "--kind", "many", *options)
    quiet = cli("job", verb, "--kind", "quiet", "--json", *options)

    assert (few.err, quiet.err) == ("", "")
    assert many.err == f"{stage}: 120 of 120 jobs\n"
    assert many.out.startswith("120 jobs ")
