"""``jobq queue``, ``jobq kind`` and ``jobq stats``."""

from collections.abc import Callable

import jobq
from tests.cli.conftest import Answer

Cli = Callable[..., Answer]


def test_pause_and_resume_say_what_changed(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A pause is stored with who and why; doing it twice changes nothing and is no error."""
    first = cli("queue", "pause", "default", "--who", "ada", "--why", "disk\nfull", "--db", jobs.path)
    second = cli("queue", "pause", "default", "--db", jobs.path)
    listed = cli("queue", "list", "--db", jobs.path)
    resumed = cli("queue", "resume", "default", "--db", jobs.path, "--json")

    assert (first.code, first.out) == (0, "queue default paused\n")
    assert (second.code, second.out) == (0, "queue default was paused already\n")
    assert "ada  disk\\nfull" in listed.out
    assert resumed.json == {"queue": "default", "paused": False, "changed": True}


def test_pause_and_resume_of_a_kind_say_what_changed(cli: Cli, jobs: jobq.JobQueue) -> None:
    """As for a queue; the list shows it, and an unknown kind is not found."""
    jobs.enqueue("mail")
    first = cli("kind", "pause", "mail", "--who", "ada", "--why", "bad deploy", "--db", jobs.path)
    second = cli("kind", "pause", "mail", "--db", jobs.path)
    listed = cli("kind", "list", "--db", jobs.path)
    counted = cli("kind", "list", "--db", jobs.path, "--json")
    resumed = cli("kind", "resume", "mail", "--db", jobs.path, "--json")
    unknown = cli("kind", "pause", "nope", "--db", jobs.path)

    assert (first.code, first.out) == (0, "kind mail paused\n")
    assert (second.code, second.out) == (0, "kind mail was paused already\n")
    assert "ada  bad deploy" in listed.out
    assert [kind["paused"] for kind in counted.json] == [True]
    assert resumed.json == {"kind": "mail", "paused": False, "changed": True}
    assert unknown.code == 3


def test_queue_list_counts_what_waits(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Queues come with what waits and runs in them."""
    jobs.enqueue("mail", queue="post")

    listed = {queue["name"]: queue for queue in cli("queue", "list", "--db", jobs.path, "--json").json}

    assert (listed["post"]["queued"], listed["post"]["running"], listed["post"]["paused"]) == (1, 0, False)
    assert listed["default"]["queued"] == 0


def test_kind_list_shows_defaults(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A registered kind is listed with its queue, attempts and cap."""

    @jobs.job(queue="post", max_attempts=3, concurrency=2)
    def mail(payload: dict) -> None:  # type: ignore[type-arg]
        """Do nothing."""

    mail.enqueue({})

    (kind,) = cli("kind", "list", "--db", jobs.path, "--json").json
    assert (kind["name"], kind["queue"], kind["max_attempts"], kind["cap"]) == ("mail", "post", 3, 2)
    assert "mail  post" in cli("kind", "list", "--db", jobs.path).out


def test_kind_retries_prints_the_schedule_with_totals(cli: Cli, jobs: jobq.JobQueue) -> None:
    """Each delay without jitter and the time that has passed by then, from the kind's stored policy."""

    @jobs.job(max_attempts=4, retry=jobq.RetryPolicy(base=60, maximum="90s", jitter=0.5))
    def mail(payload: dict) -> None:  # type: ignore[type-arg]
        """Do nothing."""

    mail.enqueue({})

    answer = cli("kind", "retries", "mail", "--db", jobs.path, "--json")
    shown = cli("kind", "retries", "mail", "--db", jobs.path)

    assert [(step["delay"], step["total"]) for step in answer.json["delays"]] == [(60, 60), (90, 150), (90, 240)]
    assert [line.split() for line in shown.out.splitlines()[1:]] == [
        ["1", "1m", "1m"], ["2", "1m30s", "2m30s"], ["3", "1m30s", "4m"]
    ]  # fmt: skip
    assert "50 %" in shown.err


def test_kind_retries_of_an_unknown_kind_is_not_found(cli: Cli, jobs: jobq.JobQueue) -> None:
    """A kind that nobody enqueued or registered has no schedule."""
    assert cli("kind", "retries", "nope", "--db", jobs.path).code == 3


def test_stats_counts_by_state_queue_and_kind(cli: Cli, jobs: jobq.JobQueue) -> None:
    """The counts of all, of each queue and of each kind."""
    jobs.enqueue("mail", queue="post")
    jobs.cancel(jobs.enqueue("mail").id)

    counted = cli("stats", "--db", jobs.path, "--json").json
    assert (counted["states"]["queued"], counted["states"]["cancelled"]) == (1, 1)
    assert counted["queues"]["post"]["queued"] == 1
    assert counted["kinds"]["mail"].items() >= counted["states"].items()
    assert counted["last_minute"]["cancelled"] == 1
    assert counted["runners"] == []
    assert "post" in cli("stats", "--db", jobs.path).out


def test_hidden_queues_are_listed_with_all(cli: Cli, jobs: jobq.JobQueue) -> None:
    """And the kinds that a queue accepts are shown."""
    config = jobq.Config(queues={"secret": jobq.QueueConfig(hidden=True, kinds=["a", "b"])})
    with jobq.open(jobs.path, config=config) as configured:
        configured.register()

    plain = cli("queue", "list", "--db", jobs.path)
    every = cli("queue", "list", "--all", "--db", jobs.path)
    listed = cli("queue", "list", "--all", "--json", "--db", jobs.path).json

    assert "secret" not in plain.out
    assert ["secret", "0", "0", "a", "b", "-", "-", "-"] in [line.split() for line in every.out.splitlines()]
    assert [(one["name"], one["hidden"], one["kinds"]) for one in listed] == [
        ("default", False, None),
        ("secret", True, ["a", "b"]),
    ]
