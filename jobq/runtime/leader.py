"""Who ticks the schedules of a fleet.

A leader spares the others work. Correctness never depends on it: however many tick at once, each slot fires once.
"""

import os
import secrets
import socket
from typing import Protocol

from jobq.arguments import check_length, check_text
from jobq.jobqueue import JobQueue
from jobq.model.duration import Duration


class Leader(Protocol):
    """Says whether this process is the one that ticks; asked whenever there is something to do."""

    def leads(self) -> bool:
        """Return whether this process leads; it may become the leader by that."""

    def resign(self) -> None:
        """Let somebody else lead; called when the runner stops."""


class SoleLeader:
    """Always leads: every process ticks. A tick that has nothing to do takes no lock, so this is fine for most."""

    def leads(self) -> bool:
        """Return True."""
        return True

    def resign(self) -> None:
        """Do nothing."""


class LeaseLeader:
    """Leads while it holds a lease in the database; when its process dies another one leads ``length`` later at most.

    A slot that falls due in between is late by that much. ``name`` tells groups of processes apart.
    """

    def __init__(self, jobs: JobQueue, *, name: str = "scheduler", length: Duration = 10.0) -> None:
        self._jobs = jobs
        self._name = check_text(name, argument="name")
        self._length = check_length(length, argument="length")
        self._nonce = secrets.token_hex(4)

    @property
    def holder(self) -> str:
        """What this process is called in the database; a forked child has a name of its own."""
        return f"{socket.gethostname()}:{os.getpid()}:{self._nonce}"

    def leads(self) -> bool:
        """Return whether the lease is held here; it is taken where it is free, and renewed when half of it is over."""
        return self._jobs.store.lead(self._name, self.holder, length=self._length)

    def resign(self) -> None:
        """Give the lease up, if it is held here."""
        self._jobs.store.resign(self._name, self.holder)
