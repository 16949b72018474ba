"""The conformance suite's stores: a new implementation is one more parameter here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobq.testing import FakeClock
from tests.ready import ready_file
from tests.store.bench import SqliteStores, Stores, Workbench


@pytest.fixture(params=["sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Stores]:
    """Opens stores of one database and closes them all."""
    opened = {"sqlite": SqliteStores}[request.param](ready_file(tmp_path / "jobs.db"), clock)
    yield opened
    opened.close()


@pytest.fixture
def bench(stores: Stores) -> Workbench:
    """One store with short verbs around it."""
    return stores.bench()


@pytest.fixture
def elsewhere(stores: Stores, bench: Workbench) -> Workbench:
    """The same database through connections of its own, as another process has them."""
    return stores.bench_elsewhere()
