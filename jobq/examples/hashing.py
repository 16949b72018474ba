"""The handlers of ``jobq demo``: one job hashes one file, and a parent job totals them.

It shows what a real program needs: typed payloads and results, errors that are final and errors that are not, a job
that waits for others without holding a thread, and work that is never repeated once it was settled.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator

import attrs

from jobq.errors import Deferred, PermanentJobError
from jobq.examples.filenames import to_name
from jobq.examples.walk import is_database
from jobq.handlers import Handlers
from jobq.jobqueue import JobQueue
from jobq.model.job import JobInfo, JobState, Priority
from jobq.model.retry import RetryPolicy
from jobq.runtime.context import RunningJob

QUEUE = "demo"
_CHUNK = 1 << 20
_PAGE = 1_000
_CODES = {errno.ENOENT: "vanished", errno.ENOTDIR: "vanished", errno.EACCES: "unreadable", errno.EPERM: "unreadable",
          errno.ELOOP: "dangling_link", errno.ENXIO: "not_a_file", errno.ENODEV: "not_a_file",
          errno.ENAMETOOLONG: "name_too_long"}

handlers = Handlers()


@attrs.frozen
class HashFile:
    """The file to hash: an absolute path, as :func:`jobq.examples.filenames.to_text` writes it."""

    path: str


@attrs.frozen
class FileHash:
    """The SHA-256 of a file in hexadecimal, and how many bytes it has."""

    sha256: str
    size: int


@attrs.frozen
class TotalDirectory:
    """The directory whose files are totalled."""

    path: str


@attrs.frozen
class DirectoryTotal:
    """How many files were hashed, how many bytes they have, and how many could not be."""

    files: int
    size: int
    failed: int


@handlers.job(queue=QUEUE, max_attempts=20, retry=RetryPolicy(base="1s", maximum="10s"))
def hash_file(payload: HashFile, job: RunningJob) -> FileHash:
    """Read a regular file once; what is none, or cannot be read, fails for good with a code that says why."""
    name = to_name(payload.path)
    digest, size = hashlib.sha256(), 0
    try:
        # Opening a FIFO would wait for its writer: look first, and do not block should it be swapped in between.
        _require_file(os.stat(name), job)
        with open(os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            _require_file(os.fstat(file.fileno()), job)
            while chunk := file.read(_CHUNK):
                job.cancel_token.raise_if_requested()
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise _final(error, name) or error from error
    return FileHash(sha256=digest.hexdigest(), size=size)


@handlers.job(queue=QUEUE, max_attempts=20, priority=Priority.BACKFILL, retry=RetryPolicy(base="1s", maximum="10s"))
def total_directory(payload: TotalDirectory, job: RunningJob) -> DirectoryTotal:
    """Add up the files of a directory once none of its jobs is left; until then come back later."""
    jobs = job.delegates
    if not isinstance(jobs, JobQueue):
        raise Deferred("`jobq demo` adds up, it knows the database", delay="1m")
    if any(jobs.find(parent_id=job.id, state=state, limit=1) for state in (JobState.QUEUED, JobState.RUNNING)):
        raise Deferred("files are left to hash", delay=0.3)
    files = size = failed = 0
    for info in newest(jobs, payload.path):
        job.cancel_token.raise_if_requested()
        if not info.state.terminal:
            raise Deferred("files of an earlier run are left to hash", delay=0.3)
        if info.state is JobState.SUCCEEDED:
            files, size = files + 1, size + jobs.get(info.id).result["size"]
        else:
            failed += 1
    return DirectoryTotal(files=files, size=size, failed=failed)


def runs(jobs: JobQueue, directory: str) -> list[JobInfo]:
    """Return the parent jobs of a directory, newest first: one for each time there was something to hash."""
    return jobs.find(kind="total_directory", subject=directory, limit=None)


def newest(jobs: JobQueue, directory: str) -> Iterator[JobInfo]:
    """Yield the newest job of each file of a directory that is still there; older ones are about older contents."""
    seen: set[str] = set()
    for run in runs(jobs, directory):
        for info in parts(jobs, run.id):
            if info.subject is not None and info.subject not in seen:
                seen.add(info.subject)
                if os.path.lexists(to_name(info.subject)):
                    yield info


def parts(jobs: JobQueue, parent_id: int, *, state: JobState | None = None) -> Iterator[JobInfo]:
    """Yield the jobs of a parent, newest first, a page at a time: there may be more than fit into memory."""
    before = None
    while page := jobs.find(parent_id=parent_id, state=state, before=before, limit=_PAGE):
        yield from page
        before = page[-1].id


def _require_file(found: os.stat_result, job: RunningJob) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.ENODEV, "not a regular file")
    if isinstance(job.delegates, JobQueue) and is_database(found, job.delegates.path):
        # To open and close it here would drop the locks that this process holds on it.
        raise PermanentJobError("this is the database of the demo", code="database")


def _final(error: OSError, name: str) -> PermanentJobError | None:
    """Return the error for a cause that stays; None for one that may pass, such as too many open files."""
    code = _CODES.get(error.errno or 0)
    if code == "vanished" and os.path.islink(name):
        code = "dangling_link"
    return PermanentJobError(error.strerror or "cannot be read", code=code) if code else None
