"""The doorbell: what becomes claimable in one process wakes the runners that wait in others."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import jobq
from jobq.doorbell import Doorbell
from jobq.runtime.ear import Ear, listen


class Elsewhere:
    """What a runner in another process has of a file: a doorbell of its own, and an ear at it."""

    def __init__(self, path: str) -> None:
        found = listen(Doorbell(path))
        assert found is not None
        self.ear: Ear = found
        self.ear.listening = True

    def was_called(self) -> bool:
        """Whether somebody rang since the last call."""
        rang = self.ear.wait(0)
        self.ear.clear()
        return rang and self.ear.take_called()


@pytest.fixture
def elsewhere(jobs: jobq.JobQueue) -> Iterator[Elsewhere]:
    """Another process that waits at the same file."""
    other = Elsewhere(jobs.path)
    yield other
    other.ear.close()


def test_an_enqueue_rings_elsewhere(jobs: jobq.JobQueue, elsewhere: Elsewhere) -> None:
    """Once it is committed; a job that is due later rings too, for its due time has to be known."""
    jobs.enqueue("note")
    assert elsewhere.was_called()
    jobs.enqueue("note", delay="1h")
    assert elsewhere.was_called()


def test_a_transaction_rings_after_its_commit(jobs: jobq.JobQueue, elsewhere: Elsewhere) -> None:
    """Not before, for there would be nothing to see, and not when it is rolled back."""
    with jobs.transaction():
        jobs.enqueue("note")
        assert not elsewhere.was_called()
    assert elsewhere.was_called()
    with pytest.raises(jobq.PayloadError), jobs.transaction():
        jobs.enqueue_many([jobq.NewJob("note"), jobq.NewJob("note", {"bad": set()})], chunk=1)
    assert not elsewhere.was_called()


def test_whatever_makes_a_job_claimable_rings(jobs: jobq.JobQueue, elsewhere: Elsewhere) -> None:
    """A requeue, a release, the end of a pause, another due time."""
    made = jobs.enqueue("note")
    lease = jobs.lease(worker="w", kinds="note")[0]
    assert elsewhere.was_called()
    steps = {
        "release": lambda: jobs.release(lease),
        "requeue": lambda: jobs.requeue(made.id),
        "reschedule": lambda: jobs.reschedule(made.id, priority=99),
        "resume": lambda: jobs.resume("default"),
    }
    jobs.pause("default")
    assert not elsewhere.was_called()
    for name, step in steps.items():
        step()
        assert elsewhere.was_called(), name


def test_another_due_time_rings_here_too(jobs: jobq.JobQueue) -> None:
    """No change of a state tells the runners of this process of it; of a new job one does, and it does not ring."""
    made = jobs.enqueue("note", delay="1h")
    ear = listen(jobs.doorbell)
    assert ear is not None
    try:
        ear.listening = True
        jobs.enqueue("note")
        assert not ear.wait(0)
        jobs.reschedule(made.id, delay=0)
        assert ear.wait(0)
    finally:
        ear.close()


def test_what_leaves_nothing_to_claim_does_not_ring(jobs: jobq.JobQueue, elsewhere: Elsewhere) -> None:
    """Claims, successes and cancels wake nobody."""
    made, other = jobs.enqueue("note"), jobs.enqueue("note")
    assert elsewhere.was_called()
    (lease,) = jobs.lease(worker="w", kinds="note")
    jobs.complete(lease)
    assert made.id == lease.job.id
    jobs.cancel(other.id)

    assert not elsewhere.was_called()


def test_a_runner_of_the_same_process_gets_no_datagram(jobs: jobq.JobQueue) -> None:
    """It is woken at once, without one."""
    ear = listen(jobs.doorbell)
    assert ear is not None
    ear.listening = True
    jobs.enqueue("note")

    assert not ear.wait(0)
    ear.close()


def test_nobody_waits_nothing_is_made(jobs: jobq.JobQueue) -> None:
    """A process that only enqueues makes neither a directory nor a socket."""
    jobs.enqueue("note")

    assert not os.path.exists(jobs.doorbell.folder)
    assert "_sender" not in vars(jobs.doorbell)


def test_the_list_of_listeners_is_kept_for_a_while(jobs: jobq.JobQueue) -> None:
    """An enqueue that nobody waits for does not look into the directory each time."""
    jobs.enqueue("note")
    jobs.doorbell._fresh_until += 3600
    other = Elsewhere(jobs.path)
    jobs.enqueue("note")
    assert not other.was_called()
    jobs.doorbell._fresh_until = 0.0
    jobs.enqueue("note")
    assert other.was_called()
    other.ear.close()


def test_a_dead_socket_is_removed_and_the_others_ring(jobs: jobq.JobQueue, elsewhere: Elsewhere) -> None:
    """A killed process leaves its socket behind; the first ring that finds it so takes it away."""
    left = Path(jobs.doorbell.folder, "dead")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))
    jobs.enqueue("note")

    assert elsewhere.was_called()
    assert not left.exists()


def test_a_full_socket_holds_nobody_up(jobs: jobq.JobQueue, elsewhere: Elsewhere) -> None:
    """Rings that nobody takes are dropped, and those that were kept are one."""
    for _ in range(500):
        jobs.enqueue("note")

    assert elsewhere.was_called()
    assert not elsewhere.was_called()


def test_a_directory_that_is_a_link_is_not_trusted(jobs: jobq.JobQueue, tmp_path: Path) -> None:
    """Where strangers may write beside the file, they could lead the rings to other sockets."""
    with jobq.open(tmp_path / "other.db") as other:
        ear = listen(other.doorbell)
        assert ear is not None
        ear.listening = True
        os.symlink(other.doorbell.folder, jobs.doorbell.folder)
        jobs.enqueue("note")
        assert not ear.wait(0)
        ear.close()


def test_a_forked_child_rings_for_the_runners_of_its_parent(jobs: jobq.JobQueue) -> None:
    """They are others to it; to the parent they are its own."""
    ear = listen(jobs.doorbell)
    assert ear is not None
    ear.listening = True
    jobs.doorbell.after_fork()
    jobs.enqueue("note")

    assert ear.wait(0)
    ear.close()
