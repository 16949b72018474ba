"""The writing connection and what is known of it: how its transactions begin, and whether their commits are synced."""

import apsw

from jobq.store.sqlite import connection as connections
from jobq.store.sqlite.patience import wait_at_most


class Handle:
    """One open connection that writes."""

    __slots__ = ("busy_timeout", "connection", "control", "synced")

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        #: Carries out BEGIN, COMMIT and savepoints. Kept, because a cursor costs about as much as such a statement.
        self.control = connection.cursor()
        #: How long it waits for other processes, in seconds; None when that is not known.
        self.busy_timeout: float | None = None
        #: Whether its commits are synced; None when that is not known.
        self.synced: bool | None = None

    def wait(self, busy_timeout: float) -> None:
        """Let it wait so many seconds for other processes."""
        self.busy_timeout = None
        wait_at_most(self.connection, busy_timeout)
        self.busy_timeout = busy_timeout

    def begin(self, *, synced: bool) -> None:
        """Begin a transaction whose commit is synced, or not."""
        if synced is not self.synced:
            # Unknown until it is done: a commit must never be taken for synced when it is not.
            self.synced = None
            connections.set_synced(self.connection, synced=synced)
            self.synced = synced
        self.control.execute("BEGIN IMMEDIATE")
