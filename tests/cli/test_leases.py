"""``jobq lease``: every verb of an outside worker, as JSON in and out."""

import io
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import jobq
from tests.cli.conftest import Answer, finish, start

Cli = Callable[..., Answer]


@pytest.fixture
def lease(cli: Cli, jobs: jobq.JobQueue) -> Callable[..., Answer]:
    """Run a verb on the test's database."""
    return lambda verb, *arguments: cli("lease", verb, *arguments, "--db", jobs.path)


@pytest.fixture
def taken(lease: Callable[..., Answer], jobs: jobq.JobQueue) -> str:
    """The line that was printed for a job that was taken."""
    jobs.enqueue("review", {"page": 7})
    return lease("take", "--worker", "agent-7").out


def take_over(jobs: jobq.JobQueue) -> jobq.Lease:
    """Let what is leased expire and take it again."""
    with closing(apsw.Connection(jobs.path)) as connection:
        connection.execute("UPDATE jobq_job SET lease_until = 1 WHERE state = 'running'")
    (again,) = jobs.lease(worker="another")
    return again


def test_take_prints_a_lease_as_one_line(taken: str, jobs: jobq.JobQueue) -> None:
    """With all that its holder needs: id, token, end, length, and the job with its payload."""
    (line,) = taken.splitlines()
    found = json.loads(line)
    (job,) = jobs.find(state="running")

    assert (found["id"], found["token"], found["worker"]) == (job.id, job.token, "agent-7")
    assert (found["until"], found["length"]) == (job.lease_until.isoformat(), 60.0)  # type: ignore[union-attr]
    assert (found["cancel_requested"], found["job"]["payload"], found["job"]["attempts"]) == (False, {"page": 7}, 1)


def test_take_takes_what_it_is_told(lease: Callable[..., Answer], jobs: jobq.JobQueue) -> None:
    """Kinds and queues may be repeated; the best come first, up to the limit, for the length that is named."""
    jobs.enqueue("other", priority="user")
    made = [jobs.enqueue(kind, queue=queue).id for kind, queue in (("a", "x"), ("b", "y"), ("a", "y"), ("a", "z"))]

    answer = lease("take", "--kind", "a", "--kind", "b", "--queue", "x", "--queue", "y", "--limit", 2, "--length", "2m")

    assert [line["id"] for line in answer.lines] == made[:2]
    assert {line["length"] for line in answer.lines} == {120.0}
    assert all(line["worker"].endswith(":lease") for line in answer.lines)


def test_take_writes_the_payload_into_a_file(
    lease: Callable[..., Answer], jobs: jobq.JobQueue, tmp_path: Path
) -> None:
    """As JSON, for a program that reads nothing else."""
    jobs.enqueue("review", {"text": "größer"})

    assert lease("take", "--payload", "payload.json").code == 0
    assert json.loads((tmp_path / "payload.json").read_text()) == {"text": "größer"}


def test_take_gives_back_what_it_cannot_hand_over(lease: Callable[..., Answer], jobs: jobq.JobQueue) -> None:
    """A payload that cannot be written costs no attempt and no waiting for the end of the lease."""
    job_id = jobs.enqueue("review").id

    answer = lease("take", "--payload", "no/such/directory")

    assert (answer.code, answer.out) == (1, "")
    assert "no/such/directory: No such file" in answer.err
    assert (jobs.get(job_id).state, jobs.get(job_id).attempts) == ("queued", 0)


def test_nothing_to_take_is_for_later(lease: Callable[..., Answer], jobs: jobq.JobQueue) -> None:
    """Exit code 75 and no data; a kind that nobody knows is said, for it may be misspelt."""
    jobs.enqueue("review", delay="1h")

    answer, strange = lease("take", "--kind", "review"), lease("take", "--kind", "revue", "--wait", "1ms")

    assert (answer.code, answer.out, answer.err) == (75, "", "nothing to take\n")
    assert (strange.code, strange.err) == (75, "note: no handler or job knows the kind revue\n")


def test_take_waits_for_something_to_take(jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """It is taken as it is enqueued, by another process."""
    process = start("lease", "take", "--wait", "60", "--db", jobs.path, cwd=tmp_path)
    made = jobs.enqueue("review").id

    answer = finish(process)

    assert (answer.code, answer.lines[0]["id"]) == (0, made)


def test_extend_prints_the_lease_anew(lease: Callable[..., Answer], jobs: jobq.JobQueue, taken: str) -> None:
    """For its own length or another one, and it says whether a cancel was asked."""
    before = json.loads(taken)
    same = lease("extend", taken).json
    jobs.cancel(before["id"])
    longer = lease("extend", taken, "--length", "10m").json

    assert (same["token"], same["length"], same["cancel_requested"]) == (before["token"], 60.0, False)
    assert (longer["length"], longer["cancel_requested"]) == (600.0, True)
    assert before["until"] < same["until"] < longer["until"]


@pytest.mark.parametrize("given", ["file", "standard input", "text", "id and token"])
def test_a_lease_is_given_in_three_ways(
    lease: Callable[..., Answer], taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """A file, standard input, the text; and of it only the id and the token count."""
    (tmp_path / "lease.json").write_text(taken)
    monkeypatch.setattr("sys.stdin", io.StringIO(taken))
    found = json.loads(taken)
    ways = {"file": "lease.json", "standard input": "-", "text": taken}

    answer = lease("complete", ways.get(given, json.dumps({"id": found["id"], "token": found["token"]})))

    assert (answer.code, answer.out) == (0, f"job {found['id']} succeeded\n")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param(None, None, id="none"),
        pytest.param('{"ok": true}', {"ok": True}, id="argument"),
        pytest.param("- [1, 2]\n", [1, 2], id="standard_input"),
        pytest.param("- ", None, id="empty_standard_input"),
    ],
)
def test_complete_keeps_the_result(
    lease: Callable[..., Answer],
    jobs: jobq.JobQueue,
    taken: str,
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    result: Any,
) -> None:
    """From the command line or standard input; a program that has nothing to say means null."""
    if text is not None and text.startswith("-"):
        monkeypatch.setattr("sys.stdin", io.StringIO(text[1:]))
        text = "-"

    assert lease("complete", taken, *(() if text is None else (text,))).code == 0
    assert (jobs.find()[0].state, jobs.get(json.loads(taken)["id"]).result) == ("succeeded", result)


def test_fail_counts_the_attempt(lease: Callable[..., Answer], jobs: jobq.JobQueue, taken: str) -> None:
    """It is tried again; the text is redacted, the code kept with the run."""
    answer = lease("fail", taken, "no answer, password=hunter2", "--code", "unreachable")

    job = jobs.find()[0]
    assert (answer.code, answer.out) == (0, f"job {job.id} failed and is tried again later\n")
    (run,) = jobs.history(job.id)
    assert (job.state, job.attempts, run.reason, run.worker) == ("queued", 1, "unreachable", "agent-7")
    assert "no answer" in str(job.last_error)
    assert "hunter2" not in str(job.last_error)


def test_fail_reads_why_from_standard_input(
    lease: Callable[..., Answer], jobs: jobq.JobQueue, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as what a program wrote to its standard error; a permanent failure is not tried again."""
    monkeypatch.setattr("sys.stdin", io.StringIO("no such page\n"))

    answer = lease("fail", taken, "-", "--permanent", "--json")

    job = jobs.find()[0]
    assert answer.json == {"id": job.id, "outcome": "failed"}
    assert (job.state, job.last_error, job.failure_class) == ("failed", "no such page", "unrecoverable")


def test_defer_and_release_count_no_attempt(lease: Callable[..., Answer], jobs: jobq.JobQueue, taken: str) -> None:
    """The one comes again when it is named, with its reason; the other at once."""
    until = "2030-01-31T08:00:00+01:00"
    assert lease("defer", taken, "--until", until, "--reason", "closed").out.endswith("comes again later\n")
    deferred = jobs.find()[0]
    assert (deferred.attempts, deferred.deferrals, deferred.last_error) == (0, 1, "closed")
    assert deferred.run_at.isoformat() == "2030-01-31T07:00:00+00:00"

    jobs.reschedule(deferred.id, delay=0)
    again = lease("take").out
    assert lease("release", again).out.endswith("was given back\n")
    assert (jobs.find()[0].state, jobs.find()[0].attempts) == ("queued", 0)


@pytest.mark.parametrize(
    "verb",
    [("extend",), ("complete",), ("fail", "why"), ("defer", "--delay", "1m"), ("release",)],
    ids=lambda verb: verb[0],
)
def test_a_stale_lease_says_so_and_changes_nothing(
    lease: Callable[..., Answer], jobs: jobq.JobQueue, taken: str, verb: tuple[str, ...]
) -> None:
    """Exit code 4 with what to do; whoever has the job by now keeps it."""
    holder = take_over(jobs)
    before = jobs.get(holder.id)

    answer = lease(verb[0], taken, *verb[1:])

    assert (answer.code, answer.out) == (4, "")
    assert answer.err.startswith(f"error: the lease on job {holder.id} was lost\nfix: Stop working on this job")
    assert jobs.get(holder.id) == before


def test_the_lease_of_a_job_that_has_ended_is_stale(lease: Callable[..., Answer], taken: str) -> None:
    """A job ends once."""
    assert lease("complete", taken).code == 0
    assert lease("complete", taken).code == lease("extend", taken).code == 4


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("complete", "nothing.json"), 2, "nothing.json cannot be read: No such file", id="no_file"),
        pytest.param(("complete", "{"), 2, "not a JSON object", id="no_json"),
        pytest.param(("complete", "list.json"), 2, "not a JSON object", id="no_object"),
        pytest.param(("complete", "{}"), 2, "no id or no token", id="empty"),
        pytest.param(("complete", '{"id": 99, "token": "t"}'), 3, "no job has the id 99", id="no_job"),
        pytest.param(("complete", '{"id": 99, "token": "t"}', "{"), 2, "the result is not JSON", id="result"),
        pytest.param(("complete", "-", "-"), 2, "standard input cannot be both", id="complete_reads_twice"),
        pytest.param(("fail", "-", "-"), 2, "standard input cannot be both", id="fail_reads_twice"),
        pytest.param(("defer", "{}"), 2, "when is not said", id="defer_never"),
        pytest.param(("take", "--limit", "2", "--payload", "f"), 2, "one file holds one payload", id="payloads"),
        pytest.param(("take", "--queue", "No Queue"), 2, "queue", id="queue_name"),
        pytest.param(("take", "--length", "soon"), 2, "--length", id="length"),
    ],
)
def test_what_is_no_lease_is_refused(
    lease: Callable[..., Answer], tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """With a sentence, without a traceback."""
    (tmp_path / "list.json").write_text("[]")

    answer = lease(*arguments)

    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err
    assert "Traceback" not in answer.err


def test_a_result_that_is_no_json_leaves_the_lease(
    lease: Callable[..., Answer], jobs: jobq.JobQueue, taken: str
) -> None:
    """The worker may still say what is wrong."""
    assert lease("complete", taken, "forty-two").code == 2
    assert jobs.find()[0].state == "running"
    assert lease("fail", taken, "it printed no JSON").code == 0
