"""What listings read from the disk, in bytes, beside jobs with large payloads and results."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import jobq
from jobq.testing import FakeClock


class CountingFiles(apsw.VFS):
    """The file system of all connections, which counts the bytes that are read."""

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        self.read = 0
        super().__init__("counting", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's name
        """Open a file whose reads count."""
        return CountingFile(self, name, flags)


class CountingFile(apsw.VFSFile):
    """A file whose reads count."""

    def __init__(self, vfs: CountingFiles, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__(vfs.base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        """Read, and count."""
        self._vfs.read += amount
        return super().xRead(amount, offset)


@pytest.fixture
def files() -> Iterator[CountingFiles]:
    """The counting file system."""
    vfs = CountingFiles()
    yield vfs
    vfs.unregister()


LISTINGS: list[Callable[[jobq.JobQueue], object]] = [
    lambda jobs: jobs.find(limit=None),
    lambda jobs: jobs.find(state="succeeded", limit=None),
    lambda jobs: jobs.find(subject="book", limit=None),
    lambda jobs: jobs.counts(),
    lambda jobs: jobs.stats(),
    lambda jobs: jobs.queues(),
    lambda jobs: jobs.kinds(),
    lambda jobs: jobs.doctor(),
    lambda jobs: jobs.explain(1),
    lambda jobs: jobs.prune(older_than=0, dry_run=True),
    lambda jobs: jobs.cancel(where={"kind": "large"}, dry_run=True),
]


@pytest.mark.parametrize(
    ("jobs_in_all", "size"),
    [pytest.param(300, 50_000, id="short"), pytest.param(1_000, 1_000_000, id="long", marks=pytest.mark.storm)],
)
def test_b54_listings_read_rows_and_no_payload(
    files: CountingFiles, tmp_path: Path, jobs_in_all: int, size: int
) -> None:
    """A thousand jobs of a megabyte each cost what a thousand small ones do: some hundred bytes each."""
    path, pad = tmp_path / "jobs.db", "x" * size
    with jobq.open(path, clock=FakeClock(), config=jobq.Config(durability="relaxed")) as jobs:
        for _ in range(jobs_in_all // 10):
            jobs.enqueue_many([jobq.NewJob("large", pad, subject="book") for _ in range(10)])
        for lease in jobs.lease("large", worker="w", limit=5):
            jobs.complete(lease, pad)
    for listing in LISTINGS:
        with jobq.open(path, clock=FakeClock()) as jobs:
            jobs.store.data_version()
            files.read = 0
            listing(jobs)
            assert files.read < 100_000 + 2_000 * jobs_in_all
    with jobq.open(path, clock=FakeClock()) as jobs:
        files.read = 0
        assert len(jobs.get(1).payload) == size
        assert files.read > size, "reads are counted"
