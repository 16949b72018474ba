"""The PostgreSQL that tests ask for: each test has the database for itself, and what cannot be had says why."""

from pathlib import Path

import psycopg
import pytest

from tests import postgres
from tests.postgres import Cluster, NoPostgres


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_has_an_empty_database(postgres_dsn: str, number: int) -> None:
    """A test makes the same table as the one before it, and finds only its own row in it."""
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("CREATE TABLE orders (id integer)")
        connection.execute("INSERT INTO orders VALUES (%s)", (number,))

    with psycopg.connect(postgres_dsn) as connection:
        assert connection.execute("SELECT id FROM orders").fetchall() == [(number,)]


def test_connection_left_open_is_told(postgres_cluster: Cluster) -> None:
    """A database with an open connection is emptied all the same, and the test that left it open fails."""
    with psycopg.connect(postgres_cluster.dsn) as left_open:
        left_open.execute("CREATE TABLE orders (id integer)")
        with pytest.raises(AssertionError, match="still open"):
            postgres_cluster.clear(patience=0)

        with pytest.raises(psycopg.OperationalError):
            left_open.execute("SELECT 1")


def test_missing_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where no version is installed the reason to skip names the package."""
    monkeypatch.setattr(postgres, "INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoPostgres, match="apt-get install postgresql"):
        Cluster()


def test_server_that_cannot_start_says_why(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ends at once is reported with its own last words."""
    broken = Cluster()
    monkeypatch.setattr(broken, "_initialise", lambda: None)

    with pytest.raises(NoPostgres, match="the server does not start"):
        broken.start()
