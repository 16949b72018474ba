"""Who works in a runner: how many threads for which queue, and which relays."""

from collections.abc import Iterable, Mapping

from jobq.arguments import check_int, check_queue
from jobq.errors import ArgumentError
from jobq.jobqueue import JobQueue
from jobq.model.job import DEFAULT_QUEUE
from jobq.outbox.outbox import Outbox

#: Worker threads of the default queue and of any other, where nobody says how many.
DEFAULT_WORKERS, OTHER_WORKERS = 2, 1


def threads_of(jobs: JobQueue) -> Mapping[str, int]:
    """Return the threads for every queue of the configuration and of the handlers; the default queue always counts."""
    handlers = (jobs.handlers.find(kind) for kind in jobs.handlers.kinds())
    named = (handler.queue for handler in handlers if handler is not None and handler.queue is not None)
    threads = {}
    for queue in dict.fromkeys((DEFAULT_QUEUE, *jobs.config.queues, *named)):
        configured = jobs.config.queues.get(queue)
        number = None if configured is None else configured.workers
        usual = DEFAULT_WORKERS if queue == DEFAULT_QUEUE else OTHER_WORKERS
        threads[queue] = usual if number is None else number
    return {queue: number for queue, number in threads.items() if number}


def check_workers(workers: Mapping[str, int]) -> Mapping[str, int]:
    """Return the numbers of threads that somebody named; anything but names of queues and numbers is refused."""
    if not isinstance(workers, Mapping) or not workers:
        raise ArgumentError("workers", "a mapping of queues to numbers of threads is needed")
    return {
        check_queue(queue, argument="workers"): check_int(number, argument="workers", least=1, most=1_000)
        for queue, number in workers.items()
    }


def check_outboxes(outboxes: Iterable[Outbox], jobs: JobQueue) -> tuple[Outbox, ...]:
    """Return the outboxes of this job queue's file; anything else is refused, and so is one that comes twice."""
    found = tuple(outboxes) if isinstance(outboxes, Iterable) else (outboxes,)
    for outbox in found:
        if not isinstance(outbox, Outbox):
            raise ArgumentError("outboxes", f"Outbox objects are needed, not a {type(outbox).__name__}")
        if outbox.jobs.path != jobs.path:
            fix = "Run its relay by a runner of its own job queue, or by outbox.relay.start()."
            raise ArgumentError("outboxes", "one of them publishes into another file", fix=fix)
    if len({id(outbox) for outbox in found}) < len(found):
        raise ArgumentError("outboxes", "one of them is named twice", fix="Name each once: it has one relay.")
    return found
