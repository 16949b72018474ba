"""The one log line of each attempt."""

from collections.abc import Sequence
from typing import Any

from jobq.log import get_logger
from jobq.model.effects import Verdict
from jobq.model.lease import Settled
from jobq.model.outcome import Failed
from jobq.runtime.hand import Ended

logger = get_logger(__name__)


def report(ended: Sequence[Ended], settled: Sequence[Settled]) -> None:
    """Log what each settled run came to."""
    quiet = not logger.enabled("info")
    for one, answer in zip(ended, settled, strict=True):
        for kind, error in answer.refused:
            logger.warning("jobq.followup.refused", job_id=one.claim.id, kind=kind, error=error)
        if not quiet or answer.verdict != Verdict.SUCCEEDED:
            _report(one, answer)


def _report(ended: Ended, settled: Settled) -> None:
    claim = ended.claim
    fields: dict[str, Any] = {
        "job_id": claim.id,
        "kind": claim.kind,
        "queue": claim.queue,
        "attempt": claim.attempts,
        "worker": claim.worker,
        "waited_ms": claim.waited_ms,
        "ran_ms": round(1000 * (ended.ran or 0.0)),
    }
    if settled.verdict in (Verdict.RETRIED, Verdict.FAILED):
        where = ended.outcome.where if isinstance(ended.outcome, Failed) else None
        fields |= {"error": settled.error, "reason": settled.reason, "where": where}
    match settled.verdict:
        case Verdict.SUCCEEDED:
            logger.info("jobq.job.succeeded", **fields)
        case Verdict.RETRIED:
            logger.warning("jobq.job.retry_scheduled", **fields, run_at=settled.run_at)
        case Verdict.DEFERRED:
            logger.info("jobq.job.deferred", **fields, run_at=settled.run_at)
        case Verdict.FAILED:
            logger.error("jobq.job.failed", **fields)
        case Verdict.CANCELLED:
            logger.info("jobq.job.cancelled", **fields)
        case Verdict.RELEASED:
            logger.info("jobq.job.released", **fields)
        case _:
            logger.warning("jobq.lease.lost", **fields)
