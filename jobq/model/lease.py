"""The right to finish a job until a time, in two forms, and what a claim asks for.

:class:`Claim` is what a claim hands to a worker thread: the raw columns that a run needs, cheap to make.
:class:`Lease` is what an outside worker holds: a whole job with its token, a value that can cross a network.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import attrs

from jobq.model.job import Job
from jobq.model.outcome import Outcome
from jobq.model.retry import RetryPolicy


class Claim(NamedTuple):
    """One claimed job as a worker thread gets it; ``payload`` and ``meta`` are still JSON text."""

    id: int
    kind: str
    queue: str
    priority: int
    payload: str
    #: The number of this run: it is already counted.
    attempts: int
    max_attempts: int
    deferrals: int
    parent_id: int | None
    actor: str
    tenant_id: str | None
    subject: str | None
    meta: str | None
    schedule: str | None
    slot: datetime | None
    last_error: str | None
    token: str
    worker: str
    #: How long the job was due before it was claimed.
    waited_ms: int
    catch_up: bool = False


@attrs.frozen(kw_only=True)
class Lease:
    """The right to finish ``job`` until ``until``, for whoever shows ``token``."""

    job: Job
    token: str
    worker: str
    until: datetime
    #: Seconds.
    length: float
    #: Whether a cancel was asked, as of the claim or of the last extension.
    cancel_requested: bool = False

    @property
    def id(self) -> int:
        """The id of the leased job."""
        return self.job.id


class ClaimRequest(NamedTuple):
    """What a claim may take.

    The first job for each of ``workers`` may be any; further ones, up to ``hand`` for each, only jobs that were never
    tried and may be tried again (a process that dies with them in its hand has cost them one attempt), of kinds
    without a cap or a gate. Jobs are taken strictly in order, so the first that does not qualify ends the claim.
    """

    workers: tuple[str, ...]
    #: Seconds.
    lease_length: float
    #: None takes every kind that the database knows.
    kinds: tuple[str, ...] | None = None
    #: None takes every queue.
    queues: tuple[str, ...] | None = None
    hand: int = 1
    #: Caps that win over the stored ones.
    kind_limits: Mapping[str, int] = {}
    #: The gate of each gated kind, and the permits that the caller holds for each gate.
    gates: Mapping[str, str] = {}
    permits: Mapping[str, int] = {}
    #: Grant each expired lease one more lease length instead of reclaiming it: this machine has just slept.
    hold_expired: bool = False


class Settlement(NamedTuple):
    """The end of one run, to be written if ``token`` is still the job's."""

    job_id: int
    token: str
    outcome: Outcome
    policy: RetryPolicy = RetryPolicy()


class Settled(NamedTuple):
    """What a settlement came to."""

    job_id: int
    #: A :class:`jobq.model.effects.Verdict`; SUPERSEDED when the token was old and nothing was written.
    verdict: str
    #: When a job that was retried or deferred runs again.
    run_at: datetime | None = None
    #: What the row now says: the text and the code of a failure.
    error: str | None = None
    reason: str | None = None


class Beat(NamedTuple):
    """The answer to the extension of one lease; a superseded lease has no answer."""

    job_id: int
    token: str
    until: datetime
    cancel_requested: bool
