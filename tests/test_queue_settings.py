"""What the configuration says of a queue and every process obeys: hidden, and the kinds that it accepts."""

from collections.abc import Callable

import pytest

import jobq
from jobq import Config, JobQueue, KindNotAccepted, QueueConfig
from jobq.store.sqlite import accepting
from tests.conftest import ErrorLog

Again = Callable[..., JobQueue]


def configure(open_again: Again, **settings: object) -> None:
    """Let a process with this configuration of the queue ``mail`` do its first write."""
    open_again(config=Config(queues={"mail": QueueConfig(**settings)})).register()  # type: ignore[arg-type]


def test_hidden_queue_is_left_out_of_listings_and_its_jobs_are_found(jobs: JobQueue, open_again: Again) -> None:
    """By a process that knows nothing of the configuration."""
    configure(open_again, hidden=True)
    made = jobs.enqueue("a", queue="mail")

    assert [queue.name for queue in jobs.queues()] == ["default"]
    assert [(queue.name, queue.hidden, queue.queued) for queue in jobs.queues(hidden=True)] == [
        ("default", False, 0),
        ("mail", True, 1),
    ]
    assert jobs.get(made.id).queue == "mail"
    assert [job.id for job in jobs.find(queue="mail")] == [made.id]
    assert jobs.counts()["queued"] == 1


def test_queue_refuses_kinds_that_it_does_not_accept(jobs: JobQueue, open_again: Again) -> None:
    """Nothing of the call is written, whoever enqueues; kinds that it accepts go in."""
    configure(open_again, kinds=["mail", "fax"])

    with pytest.raises(KindNotAccepted) as caught:
        jobs.enqueue_many([jobq.NewJob("mail", queue="mail"), jobq.NewJob("sms", queue="mail")])

    assert (caught.value.kind, caught.value.queue, caught.value.accepted) == ("sms", "mail", ("mail", "fax"))
    assert "mail, fax" in str(caught.value.fix)
    assert jobs.find() == []
    assert "sms" not in [kind.name for kind in jobs.kinds()]
    jobs.enqueue("fax", queue="mail")
    jobs.enqueue("sms")


def test_empty_list_of_kinds_accepts_none(jobs: JobQueue, open_again: Again) -> None:
    """It is not the same as no list."""
    configure(open_again, kinds=[])

    with pytest.raises(KindNotAccepted):
        jobs.enqueue("a", queue="mail")
    (_, mail) = jobs.queues()
    assert mail.kinds == ()


def test_kind_whose_own_queue_does_not_accept_it_is_refused(jobs: JobQueue, open_again: Again) -> None:
    """A contradiction of registration and configuration is told where it first matters."""
    configure(open_again, kinds=["fax"])
    jobs.job(name="sms", queue="mail")(lambda payload: None)

    with pytest.raises(KindNotAccepted):
        jobs.enqueue("sms")


def test_last_configuration_wins_and_others_leave_it(jobs: JobQueue, open_again: Again) -> None:
    """A process that only names the queue changes nothing; jobs that were there stay; a pause does, too."""
    configure(open_again, hidden=True, kinds=["a"])
    jobs.enqueue("a", queue="mail")
    jobs.pause("mail")
    jobs.job(name="b", queue="mail")(lambda payload: None)
    jobs.register()
    (_, before) = jobs.queues(hidden=True)
    assert (before.hidden, before.kinds, before.paused) == (True, ("a",), True)

    configure(open_again, kinds=["b"])

    (_, after) = jobs.queues()
    assert (after.hidden, after.kinds, after.paused, after.queued) == (False, ("b",), True, 1)


def test_registration_that_says_nothing_new_writes_no_row(jobs: JobQueue, open_again: Again) -> None:
    """So that each start of a process costs no change of the file."""
    configure(open_again, kinds=["a"])
    version = jobs.store.data_version()

    configure(open_again, kinds=["a"])

    assert jobs.store.data_version() == version


def test_schedule_whose_entry_is_not_accepted_is_marked(
    jobs: JobQueue, open_again: Again, errors: ErrorLog
) -> None:
    """The others fire, and this one goes on when the configuration allows it."""
    configure(open_again, kinds=["a"])
    jobs.schedules.add("s", every="1m", kind="b", queue="mail")
    jobs.schedules.add("t", every="1m", kind="b")
    jobs.clock.advance("1m")  # type: ignore[attr-defined]

    assert [one.schedule for one in jobs.schedules.tick()] == ["t"]
    assert "KindNotAccepted" in str(jobs.schedules.get("s").error)
    assert errors.take() == ["jobq.schedule.failed"]

    configure(open_again)
    assert [one.schedule for one in jobs.schedules.tick()] == ["s"]


def test_follow_up_that_is_not_accepted_undoes_nothing(jobs: JobQueue, open_again: Again) -> None:
    """It is left out, as other follow-ups that are refused."""
    configure(open_again, kinds=["a"])

    @jobs.job
    def first(payload: None, job: jobq.RunningJob) -> None:
        job.follow_up("b", queue="mail")

    made = first.enqueue()

    assert jobq.Runner(jobs).drain().succeeded == 1
    assert [job.id for job in jobs.find()] == [made.id]


def test_one_function_tells_whether_a_queue_accepts_a_kind(jobs: JobQueue, open_again: Again) -> None:
    """For whoever routes; a queue without a row, or with one that was broken by hand, accepts all."""
    configure(open_again, kinds=["a"])

    answers = jobs.store._read(  # type: ignore[attr-defined]
        lambda conn: [accepting.accepts(conn, *pair) for pair in (("mail", "a"), ("mail", "b"), ("new", "b"))]
    )
    assert answers == [True, False, True]
    assert [accepting.accepted_kinds(text) for text in (None, "{", "5", "[]")] == [None, None, None, ()]
