"""Enqueues what of a directory was not hashed yet: the producer's side of the demo.

The jobs themselves are the ledger. A file's job names it as its subject and keeps its size and times as meta, so that
one whose numbers are unchanged is never hashed a second time, whether a run ended or was killed.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice

import attrs

from jobq.examples.filenames import to_text
from jobq.examples.hashing import HashFile, TotalDirectory, parts, runs
from jobq.examples.walk import Entry
from jobq.jobqueue import JobQueue
from jobq.model.job import JSON
from jobq.newjob import NewJob

_CHUNK = 1_000
#: A subject is at most this long; a path needs thousands of undecodable bytes to get there.
_LONGEST = 10_000


@attrs.frozen
class _Known:
    id: int
    ended: bool
    numbers: JSON


class Ledger:
    """What the database knows of one directory; made at the start of a run, kept up to date by its enqueues."""

    def __init__(self, jobs: JobQueue, directory: str) -> None:
        self._jobs = jobs
        self._subject = to_text(directory)
        self._known: dict[str, _Known] = {}
        #: Everything that was listed, and of that what had ended before this run.
        self.listed = self.settled = 0
        #: The jobs that this run waits for, by id.
        self.open: set[int] = set()
        self.parent_id = self._continue()

    def enqueue(self, entries: Iterable[Entry], troubles: list[tuple[str, str]]) -> Iterator[int]:
        """Enqueue a job for each entry that has none yet, a thousand in a transaction; yield how many were listed.

        An entry whose name is too long to be kept goes to ``troubles``.
        """
        iterator = iter(entries)
        while chunk := list(islice(iterator, _CHUNK)):
            texts = [(entry, to_text(entry.path)) for entry in chunk]
            troubles.extend((entry.path, "name too long") for entry, text in texts if len(text) > _LONGEST)
            fits = [(entry, text) for entry, text in texts if len(text) <= _LONGEST]
            new = [self._job(entry, text) for entry, text in fits if not self._has(text, _numbers(entry))]
            self.listed += len(fits)
            if new:
                self.open.update(made.id for made in self._jobs.enqueue_many(new))
            yield self.listed

    def finish(self) -> int:
        """Let the parent add up now that everything is enqueued; return its id.

        When nothing was new and the newest parent's total covers what was listed, that one is the answer.
        """
        if self.parent_id is None:
            newest = runs(self._jobs, self._subject)[:1]
            if newest and self.covers(newest[0].id):
                return newest[0].id
        parent_id = self._parent()
        self._jobs.reschedule(parent_id, delay=0)
        return parent_id

    def covers(self, parent_id: int) -> bool:
        """Whether a parent succeeded and its total counts as many files as were listed."""
        result = self._jobs.get(parent_id).result
        return result is not None and result["files"] + result["failed"] == self.listed

    def forget_parent(self) -> None:
        """Add up in a new parent next time: this one ended before everything was enqueued."""
        self.parent_id = None

    def _continue(self) -> int | None:
        """Learn what is known; return the parent that a killed run left behind, held back until all is enqueued."""
        unfinished = None
        for run in runs(self._jobs, self._subject):
            if not run.state.terminal and unfinished is None:
                unfinished = run.id
                self._jobs.reschedule(run.id, delay="1d")
            for info in parts(self._jobs, run.id):
                if info.subject is not None:
                    self._known.setdefault(info.subject, _Known(info.id, info.state.terminal, dict(info.meta)))
        return unfinished

    def _has(self, text: str, numbers: JSON) -> bool:
        known = self._known.get(text)
        if known is None:
            return False
        if not known.ended:
            # It will read the file as it is then.
            self.open.add(known.id)
            return True
        self.settled += known.numbers == numbers
        return bool(known.numbers == numbers)

    def _job(self, entry: Entry, text: str) -> NewJob:
        key = f"hash:{hashlib.sha256(text.encode()).hexdigest()}"
        return NewJob(
            HashFile(text), dedupe_key=key, parent_id=self._parent(), actor="user", subject=text, meta=_numbers(entry)
        )

    def _parent(self) -> int:
        if self.parent_id is None:
            key = f"total:{hashlib.sha256(self._subject.encode()).hexdigest()}"
            made = self._jobs.enqueue(
                TotalDirectory(self._subject), dedupe_key=key, delay="1d", actor="user", subject=self._subject
            )
            self.parent_id = made.id
        return self.parent_id


def _numbers(entry: Entry) -> dict[str, JSON]:
    return {"size": entry.size, "modified_ns": entry.modified_ns, "changed_ns": entry.changed_ns}
