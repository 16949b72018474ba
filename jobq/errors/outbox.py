"""What an outbox refuses, and trouble with the host's database."""

from jobq.errors.root import JobqError


class OutsideTransaction(JobqError, RuntimeError):
    """An outbox requires that jobs are enqueued in a transaction, and there is none; nothing was written."""

    def __init__(self, why: str) -> None:
        super().__init__(f"an outbox requires a transaction here: {why}")
        self.why = why
        self.fix = (
            "Enqueue inside outbox.joined(connection), with a transaction open on that connection, or inside "
            "jobs.transaction(); join=False says that this job needs neither."
        )


class NotPublished(JobqError, RuntimeError):
    """A job that is staged in an outbox has no id yet: no one can wait for it.

    ``outbox_id`` is the number of its row.
    """

    def __init__(self, outbox_id: int) -> None:
        super().__init__(f"outbox row {outbox_id} is no job before it is committed and a relay has published it")
        self.outbox_id = outbox_id
        self.fix = "Enqueue it with a dedupe_key, a subject or a parent_id, and find it by that with jobs.find()."


class OutboxTableMissing(JobqError, LookupError):
    """The host's database has no table ``jobq_outbox``; nothing was staged or published."""

    def __init__(self) -> None:
        super().__init__("the database has no table jobq_outbox")
        self.fix = "Call outbox.create_table() once, or add the statements of Outbox.ddl(...) to your migrations."


_WAIT = "The relay tries again by itself; if it lasts, see who keeps a transaction open in the host's database."
_GIVE = "Give an open connection, on the thread that uses it; the relay goes on by itself once it can."


class OutboxUnavailable(JobqError, RuntimeError):
    """The connection to the host's database cannot be used, or failed; what was staged stays staged.

    ``busy`` is True where somebody else held its lock for too long.
    """

    def __init__(self, why: str, *, busy: bool = False) -> None:
        super().__init__(f"the host's database cannot be used: {why}")
        self.why = why
        self.busy = busy
        self.fix = _WAIT if busy else _GIVE
