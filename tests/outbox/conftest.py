"""The host's database of each kind, an outbox in it, and short ways to stage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jobq
from tests.outbox import hosts


@pytest.fixture(params=hosts.KINDS)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The host's database, once for each kind of connection."""
    return hosts.make(request.param, tmp_path, lambda: str(request.getfixturevalue("postgres_dsn")))


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    """The host's database where the kind does not matter: a file of the standard sqlite3 module."""
    return hosts.make("sqlite3", tmp_path, str)


@pytest.fixture
def make_outbox(jobs: jobq.JobQueue) -> Callable[..., jobq.Outbox]:
    """Makes an outbox in a database, with its table."""

    def make(database: Any, **options: Any) -> jobq.Outbox:
        outbox = jobq.Outbox(jobs, connect=database.connect, **options)
        outbox.create_table()
        return outbox

    return make


@pytest.fixture
def outbox(host: Any, make_outbox: Callable[..., jobq.Outbox]) -> jobq.Outbox:
    """An outbox in the host's database."""
    return make_outbox(host)


@pytest.fixture
def shop_outbox(shop: Any, make_outbox: Callable[..., jobq.Outbox]) -> jobq.Outbox:
    """An outbox in the one file."""
    return make_outbox(shop)


@contextmanager
def transaction(host: Any) -> Iterator[Any]:
    """Open a connection of the host's in a transaction, which is committed unless an exception ends the block."""
    connection = host.connect()
    try:
        host.begin(connection)
        try:
            yield connection
        except BaseException:
            host.rollback(connection)
            raise
        host.commit(connection)
    finally:
        connection.close()


@contextmanager
def staging(outbox: jobq.Outbox, host: Any) -> Iterator[Any]:
    """The same with the outbox joined to it."""
    with transaction(host) as connection, outbox.joined(connection):
        yield connection
