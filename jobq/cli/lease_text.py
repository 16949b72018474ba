"""A lease as text: what ``jobq lease take`` prints and the other verbs are given."""

import json
import sys
from typing import Any

from jobq.cli.exits import Exit, Stop
from jobq.cli.output import plain, say_json
from jobq.jobqueue import JobQueue
from jobq.model.lease import Lease

_FIX = 'Give what `jobq lease take` printed; of it "id" and "token" are needed.'


def print_lease(lease: Lease) -> None:
    """Print a lease as one line of JSON, at once."""
    fields = plain(lease)
    job = fields.pop("job")
    say_json({"id": lease.id, **fields, "job": job}, line=True)


def read_lease(jobs: JobQueue, given: str) -> Lease:
    """Return the lease that an argument names; whether its token still stands is for the verb to find out.

    Raises:
        Stop: there is no lease in it.
        JobNotFound: its job is gone.
    """
    found = _parse(_text(given))
    job_id, token = found.get("id"), found.get("token")
    if not isinstance(job_id, int) or not isinstance(token, str):
        raise Stop(Exit.USAGE, "the lease has no id or no token", fix=_FIX)
    job = jobs.get(job_id)
    return Lease(
        job=job,
        token=token,
        worker=job.worker or "",
        until=job.lease_until or jobs.clock.now(),
        length=job.lease_length or 0.0,
    )


def _text(given: str) -> str:
    if given.lstrip().startswith("{"):
        return given
    try:
        if given == "-":
            return sys.stdin.read()
        with open(given, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Stop(Exit.USAGE, f"the lease {given} cannot be read: {why}", fix=_FIX) from error


def _parse(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Stop(Exit.USAGE, "the lease is not a JSON object", fix=_FIX)
    return found
