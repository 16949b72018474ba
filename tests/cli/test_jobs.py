"""``jobq job``."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


def test_enqueue_makes_the_database_and_says_so(cli: Cli, tmp_path: Path) -> None:
    """The first enqueue makes the file; the id is data, the notice is not."""
    answer = cli("--db", "new.db", "job", "enqueue", "mail", '{"to": "ada"}')

    assert (answer.code, answer.out) == (0, "job 1 enqueued in queue default\n")
    assert "making a new database at new.db" in answer.err
    assert (tmp_path / "new.db").exists()


def test_enqueue_takes_every_option(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Each option arrives in its column; the actor is the user."""
    parent = jobs.enqueue("parent").id
    answer = cli(
        "job", "enqueue", "mail", '{"to": "ada"}', "--db", jobs.path, "--json", "--queue", "post", "--priority", "user",
        "--run-at", "2030-01-31T08:00:00+01:00", "--dedupe-key", "k", "--max-attempts", "7", "--parent", parent,
        "--tenant", "t", "--subject", "s", "--meta", '{"trace": 1}',
    )  # fmt: skip

    job = jobs.get(answer.json["id"])
    assert answer.json["created"] is True
    assert answer.json["job"]["run_at"] == "2030-01-31T07:00:00+00:00"
    assert (job.payload, job.queue, job.priority, job.dedupe_key) == ({"to": "ada"}, "post", 100, "k")
    assert (job.max_attempts, job.parent_id, job.actor, job.tenant_id) == (7, parent, "user", "t")
    assert (job.subject, job.meta) == ("s", {"trace": 1})


def test_enqueue_of_a_kind_that_nobody_knows_is_accepted_with_a_note(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A misspelt kind is said on standard error; the second job of it, and a registered kind, are no news."""
    jobs.handlers.job(name="known")(lambda payload: None)
    jobs.register()

    first, second = (cli("job", "enqueue", "strange", "--db", jobs.path) for _ in range(2))

    assert (first.code, first.out) == (0, "job 1 enqueued in queue default\n")
    assert "no handler or earlier job knows the kind strange" in first.err
    assert second.err == cli("job", "enqueue", "known", "--db", jobs.path).err == ""


def test_enqueue_answers_with_the_holder_of_the_key(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A second job under a held key is not made, and that is no error."""
    first = jobs.enqueue("mail", dedupe_key="k")

    answer = cli("job", "enqueue", "mail", "--dedupe-key", "k", "--db", jobs.path)

    assert (answer.code, answer.out) == (0, f"job {first.id} holds the key and is queued; nothing enqueued\n")


def test_enqueue_reads_the_payload_from_standard_input(
    cli: Cli, jobs: jobq.JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A payload of - is read from standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("[1, 2]"))

    answer = cli("job", "enqueue", "mail", "-", "--db", jobs.path, "--json")

    assert jobs.get(answer.json["id"]).payload == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("enqueue", "mail", "{"), 2, "not JSON", id="payload_is_no_json"),
        pytest.param(("enqueue", "mail", '{"a": NaN}'), 2, "$.a", id="payload_with_nan"),
        pytest.param(("enqueue", "mail", "--priority", "5000"), 2, "priority", id="priority"),
        pytest.param(("enqueue", "mail", "--queue", "No Queue"), 2, "queue", id="queue_name"),
        pytest.param(("enqueue", "mail", "--delay", "soon"), 2, "--delay", id="delay"),
        pytest.param(("enqueue", "mail", "--run-at", "2030-01-01T00:00:00"), 2, "offset", id="naive_time"),
        pytest.param(("enqueue", "mail", "--delay", "1", "--run-at", "2030-01-01T00:00:00Z"), 2, "both", id="times"),
        pytest.param(("enqueue", "other", "--dedupe-key", "k"), 4, "held by job", id="key_of_another_kind"),
        pytest.param(("enqueue", "mail", "--parent", "99"), 3, "99", id="no_parent"),
        pytest.param(("show", "99"), 3, "no job has the id 99", id="show_nothing"),
        pytest.param(("show", "x"), 2, "whole number", id="no_id"),
        pytest.param(("show", "9" * 30), 3, "no job has the id", id="id_beyond_all"),
        pytest.param(("cancel", "99"), 3, "no job has the id 99", id="cancel_nothing"),
        pytest.param(("requeue", "99"), 3, "no job has the id 99", id="requeue_nothing"),
        pytest.param(("requeue", "1", "--queue", "nope"), 3, "no queue", id="requeue_to_nowhere"),
        pytest.param(("reschedule", "1"), 2, "nothing to change", id="reschedule_nothing"),
        pytest.param(("wait", "1", "--timeout", "0"), 75, "still queued", id="wait_timeout"),
        pytest.param(("list", "--state", "done"), 2, "not one of", id="no_state"),
        pytest.param(("list", "--limit", "0"), 2, "whole number", id="no_limit"),
        pytest.param(("nonsense",), 2, "invalid choice", id="no_verb"),
    ],
)
def test_refusals_have_exit_codes_and_no_traceback(
    cli: Cli, jobs: jobq.JobQueue, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """Each refusal ends in its exit code, with a sentence on standard error and nothing on standard output."""
    jobs.enqueue("mail", dedupe_key="k")

    answer = cli("job", *arguments, "--db", jobs.path)

    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err
    assert "Traceback" not in answer.err


def test_error_is_followed_by_its_fix(cli: Cli, jobs: jobq.JobQueue) -> None:
    """An error that knows what to do about it says so on a second line."""
    answer = cli("queue", "pause", "nope", "--db", jobs.path)

    assert answer.err == "error: no queue is called 'nope'\nfix: Known queues: default.\n"


def test_list_filters_and_pages(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Filters narrow, the newest come first, and --before is the next page."""
    ids = [jobs.enqueue("mail", subject="s").id for _ in range(3)]
    jobs.enqueue("other")

    page = cli("job", "list", "--db", jobs.path, "--json", "--kind", "mail", "--limit", 2).json
    rest = cli("job", "list", "--db", jobs.path, "--json", "--subject", "s", "--before", page[-1]["id"]).json

    assert [job["id"] for job in page + rest] == ids[::-1]
    assert "payload" not in page[0]


def test_list_is_a_table_for_people(cli: Cli, jobs: jobq.JobQueue) -> None:
    """One line for each job, with control characters escaped."""
    jobs.enqueue("mail\u202e", subject="a\x1b[2J")

    heading, line = cli("job", "list", "--db", jobs.path).out.splitlines()

    assert heading.split()[:4] == ["id", "kind", "queue", "state"]
    assert "mail\\u202e" in line
    assert "a\\x1b[2J" in line


def test_list_of_nothing_is_empty(cli: Cli, jobs: jobq.JobQueue) -> None:
    """No job is no data, and no error."""
    people, programs = cli("job", "list", "--db", jobs.path), cli("job", "list", "--db", jobs.path, "--json")

    assert (people.code, people.out, people.err) == (0, "", "no job fits\n")
    assert (programs.code, programs.json) == (0, [])


def test_show_prints_every_filled_column_and_the_history(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Columns that say something, the payload, the runs that did not succeed, and what was done by hand."""
    job_id = jobs.enqueue("mail", {"to": "ada"}, max_attempts=2).id
    for lease in jobs.lease(kinds=["mail"], worker="w"):
        jobs.fail(lease, "no such\nmailbox")
    jobs.requeue(job_id, actor="user")

    shown = cli("job", "show", job_id, "--db", jobs.path).out
    answer = cli("job", "show", job_id, "--db", jobs.path, "--json")

    assert set(answer.json["job"]) == {field.name for field in jobq.Job.__attrs_attrs__}
    assert answer.json["history"][0]["worker"] == "w"
    assert answer.json["changes"][0]["what"] == "requeued"
    filled = {name for name, value in answer.json["job"].items() if value not in (None, {})}
    assert {"schedule", "slot", "progress", "meta"}.isdisjoint(filled)
    assert {line.split()[0] for line in shown.partition("\n\n")[0].splitlines()} == filled
    assert "no such\\nmailbox" in shown


def test_show_fits_on_a_terminal(terminal: Callable[..., list[str]], jobs: jobq.JobQueue) -> None:
    """Each run has a block; its error is wrapped, whole, below its beginning, and a code is capped."""
    job_id = jobs.enqueue("mail", max_attempts=2).id
    words = [f"word{number}" for number in range(45)]
    for lease in jobs.lease(kinds=["mail"], worker="w"):
        jobs.fail(lease, " ".join(words), code="code" * 40)

    lines = terminal("job", "show", job_id, "--db", jobs.path)

    assert max(map(len, lines)) <= 80
    run = lines[lines.index("run 1, attempt 1, did not succeed") :]
    first = next(index for index, line in enumerate(run) if line.startswith("  error "))
    assert " ".join(run[first:]).split()[1:] == words
    assert ["reason", f"{'code' * 40:.63}…"] in [line.split() for line in run]


def test_list_gives_the_error_what_remains(terminal: Callable[..., list[str]], jobs: jobq.JobQueue) -> None:
    """At 80 columns long names are cut before the error is, and nothing is longer than a line."""
    jobs.enqueue("a_kind_with_a_long_name" * 3, max_attempts=1, queue="a_queue_with_a_long_name", subject="page 7")
    jobs.fail(jobs.lease(queues=["a_queue_with_a_long_name"], worker="w")[0], "x" * 300)

    heading, line = terminal("job", "list", "--db", jobs.path)

    assert len(line) == 80
    assert len(line) - heading.index("about") >= 25
    assert "page 7: xxxx" in line


def test_cancel_reaches_what_has_not_ended(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A queued job is cancelled, a running one asked, and one that ended is refused with exit code 4."""
    ended, queued, running = (jobs.enqueue("mail", priority=n).id for n in (1, 2, 3))
    jobs.cancel(ended)
    assert jobs.lease(kinds=["mail"], worker="w")[0].id == running

    answer = cli("job", "cancel", running, queued, ended, "--db", jobs.path)

    assert answer.code == 4
    assert answer.out.splitlines() == [
        f"job {running} asked to stop", f"job {queued} cancelled", f"job {ended} had ended already: cancelled"
    ]  # fmt: skip


def test_cancel_with_children_tells_of_everything_below(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Also below a job that has ended, which is no refusal; the second time nothing is left, which is."""
    root = jobs.enqueue("split").id
    jobs.complete(jobs.lease()[0])
    part = jobs.enqueue("part", parent_id=root).id
    leaf = jobs.enqueue("part", parent_id=part).id

    first = cli("job", "cancel", root, "--children", "--db", jobs.path, "--json")
    second = cli("job", "cancel", root, "--children", "--db", jobs.path)

    assert (first.code, second.code) == (0, 4)
    assert first.json == [
        {"id": root, "reached": False, "state": "succeeded"},
        {"id": part, "reached": True, "state": "cancelled"},
        {"id": leaf, "reached": True, "state": "cancelled"},
    ]
    assert second.out == f"job {root} had ended already: succeeded\n"


@pytest.mark.parametrize("missing_at", [0, 1, 2])
def test_cancel_tells_all_outcomes_whatever_the_order(cli: Cli, jobs: jobq.JobQueue, missing_at: int) -> None:
    """An id that is not there is exit code 3 and keeps nothing from being cancelled, nor from being said."""
    ended, first, second, third = (jobs.enqueue("mail").id for _ in range(4))
    jobs.cancel(ended)
    ids = [ended, first]
    ids.insert(missing_at, 99)

    people = cli("job", "cancel", *ids, "--db", jobs.path)
    programs = cli("job", "cancel", second, 99, third, "--db", jobs.path, "--json")

    assert people.code == programs.code == 3
    assert people.out == f"job {ended} had ended already: cancelled\njob {first} cancelled\n"
    assert people.err == "error: no job has the id 99\n"
    assert programs.json == [
        {"id": second, "reached": True, "state": "cancelled"},
        {"id": 99, "reached": False, "state": None},
        {"id": third, "reached": True, "state": "cancelled"},
    ]


def test_requeue_starts_over_in_the_name_of_the_user(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A cancelled job is queued again, and the change log names the user."""
    job_id = jobs.enqueue("mail").id
    jobs.cancel(job_id)

    dry = cli("job", "requeue", job_id, "--dry-run", "--db", jobs.path)
    assert jobs.get(job_id).state == "cancelled"
    done = cli("job", "requeue", job_id, "--db", jobs.path, "--json")

    assert dry.out == f"job {job_id} would be requeued\n"
    assert done.json == {"ids": [job_id], "refused": [], "dry_run": False}
    assert jobs.get(job_id).state == "queued"
    assert jobs.changes(job_id)[0].actor == "user"


def test_requeue_of_several_reports_those_that_were_refused(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Of several the others go on; exit code 4 says that one was refused."""
    done, waiting = jobs.enqueue("mail", priority=60).id, jobs.enqueue("mail").id
    jobs.complete(jobs.lease(kinds=["mail"], worker="w")[0])

    answer = cli("job", "requeue", waiting, done, "--db", jobs.path)

    assert (answer.code, answer.out) == (4, f"job {waiting} requeued\n")
    assert answer.err == f"job {done} refused: succeeded\n"


def test_requeue_of_one_running_job_is_refused(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A bare id that cannot be requeued is a refusal."""
    job_id = jobs.enqueue("mail").id
    jobs.lease(kinds=["mail"], worker="w")

    answer = cli("job", "requeue", job_id, "--db", jobs.path)

    assert answer.code == 4
    assert answer.err.startswith(f"error: job {job_id} is running and cannot be requeued\n")


def test_reschedule_changes_a_queued_job(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Due time and priority change; a job that is not queued is refused."""
    job_id = jobs.enqueue("mail").id

    when = ("--run-at", "2031-01-01T00:00:00Z", "--priority", "backfill")
    answer = cli("job", "reschedule", job_id, *when, "--db", jobs.path)
    jobs.cancel(job_id)
    refused = cli("job", "reschedule", job_id, "--delay", "5m", "--db", jobs.path)

    assert (answer.code, answer.out) == (0, f"job {job_id} runs at 2031-01-01 00:00:00Z with priority 10\n")
    assert (refused.code, refused.out) == (4, "")


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [pytest.param("complete", 0, "succeeded", id="succeeded"), pytest.param("fail", 1, "failed: no", id="failed")],
)
def test_wait_exits_as_the_job_ended(cli: Cli, jobs: jobq.JobQueue, end: str, code: int, words: str) -> None:
    """Exit code 0 for a job that succeeded, 1 for one that failed."""
    job_id = jobs.enqueue("mail", max_attempts=1).id
    lease = jobs.lease(kinds=["mail"], worker="w")[0]
    jobs.complete(lease) if end == "complete" else jobs.fail(lease, "no")

    answer = cli("job", "wait", job_id, "--timeout", "5", "--db", jobs.path)

    assert (answer.code, answer.out) == (code, f"job {job_id} {words}\n")
