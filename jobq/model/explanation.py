"""Why a job is not running, in words and as data; :mod:`jobq.model.reasons` says which reasons hold."""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from jobq.model.job import JSON, JobState


class ReasonCode(StrEnum):
    """Why a job is not running, or that it is; in the order of importance."""

    ENDED = "ended"
    RUNNING = "running"
    RETIRED = "retired"
    QUEUE_PAUSED = "queue_paused"
    KIND_PAUSED = "kind_paused"
    UNSERVED = "unserved"
    NO_HANDLER = "no_handler"
    NOT_DUE = "not_due"
    DEFERRED = "deferred"
    RETRYING = "retrying"
    CAPPED = "capped"
    BEHIND = "behind"
    NEXT = "next"


@attrs.frozen(kw_only=True)
class Reason:
    """One reason: its code, a sentence, and the numbers and names in it as data."""

    code: ReasonCode
    text: str
    data: Mapping[str, JSON]


@attrs.frozen(kw_only=True)
class Explanation:
    """Why a job is not running: every reason that holds, the most important one first.

    There is always one: a job that nothing keeps is the next in line.
    """

    job_id: int
    kind: str
    queue: str
    state: JobState
    reasons: tuple[Reason, ...]

    @property
    def codes(self) -> tuple[ReasonCode, ...]:
        """The codes of the reasons."""
        return tuple(reason.code for reason in self.reasons)

    @property
    def text(self) -> str:
        """The sentences, a line each."""
        return "\n".join(reason.text for reason in self.reasons)

    def __str__(self) -> str:
        return f"job {self.job_id} is {self.state}\n{self.text}"
