"""A PostgreSQL cluster that the test session makes, starts, stops and removes; it touches no other one.

It listens on a Unix socket in its own directory and nowhere else, so sessions that run at once cannot meet. The server
is a child of the session, and where the system lets it, it dies with the session.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

#: Where Debian's package puts the programs of each version.
INSTALLED = Path("/usr/lib/postgresql")
#: The server refuses to run as root, so it runs as this user then.
USER = "postgres"
#: Longest wait for the server to answer or to stop, in seconds.
PATIENCE = 60.0


#: The server's processes for other clients.
OTHERS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class NoPostgres(Exception):
    """There is no PostgreSQL here that can be started; the text says why."""


def programs() -> Path:
    """Return the directory of the newest version's programs."""
    found = [path.parent for path in INSTALLED.glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda directory: float(directory.parent.name))
    elsewhere = shutil.which("initdb")
    if elsewhere is None:
        raise NoPostgres("PostgreSQL is not installed: apt-get install postgresql")
    return Path(elsewhere).resolve().parent


class Cluster:
    """One cluster in a temporary directory, with trust authentication and nothing synced to the disk."""

    def __init__(self) -> None:
        self._programs = programs()
        self._identity = _identity()
        self._directory = Path(tempfile.mkdtemp(prefix="jobq-pg-"))
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make it and wait until it answers, or raise NoPostgres and leave nothing behind."""
        try:
            self._initialise()
            self._launch()
            self._await_answer()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it, connections or not, and remove its directory; nothing happens the second time."""
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            try:
                self._server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None
        shutil.rmtree(self._directory, ignore_errors=True)

    def clear(self, *, patience: float = PATIENCE) -> None:
        """Empty the database; AssertionError when a connection to it is still open, which is ended then.

        Connections that were just closed have some seconds to go. It costs a fifth of making a database for each test.
        """
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            left_open = self._others(connection, patience)
            for pid in left_open:
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        assert not left_open, "a connection to PostgreSQL is still open"

    @property
    def dsn(self) -> str:
        """The URI by which psycopg connects; SQLAlchemy wants ``postgresql+psycopg:`` in front."""
        return f"postgresql://{USER}@/postgres?host={quote(str(self._directory), safe='')}&port=5432"

    def _others(self, connection: "psycopg.Connection[Any]", patience: float) -> list[int]:
        until, pause = time.monotonic() + patience, threading.Event()
        while True:
            found = [pid for (pid,) in connection.execute(OTHERS).fetchall()]
            if not found or time.monotonic() > until:
                return found
            pause.wait(0.005)

    def _initialise(self) -> None:
        if self._identity:
            try:
                shutil.chown(self._directory, USER, USER)
            except LookupError:
                raise NoPostgres(f"PostgreSQL does not run as root, and there is no user {USER!r}") from None
        command = [self._programs / "initdb", "--pgdata", self._data, "--username", USER, "--auth", "trust"]
        settings = ["--encoding", "UTF8", "--locale", "C", "--no-sync"]
        made = subprocess.run([*command, *settings], capture_output=True, text=True, **self._surroundings)
        if made.returncode:
            raise NoPostgres(f"initdb fails here: {made.stderr.strip()}")

    def _launch(self) -> None:
        # SIGINT is the server's "fast" stop. Without setpriv a killed session leaves its server running.
        bound = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
        command = [*bound, self._programs / "postgres", "-D", self._data, "-p", "5432", "-k", self._directory, "-F"]
        settings = ["listen_addresses=", "shared_buffers=16MB", "full_page_writes=off", "synchronous_commit=off"]
        with open(self._log, "wb") as log:
            self._server = subprocess.Popen(
                [*command, *(word for setting in settings for word in ("-c", setting))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._surroundings,
            )

    def _await_answer(self) -> None:
        assert self._server is not None
        until = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.dsn).close()
                return
            # Waits a little, and notices when the server has given up.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(0.05)
            if self._server.returncode is not None or time.monotonic() > until:
                raise NoPostgres(f"the server does not start: {self._log.read_text().strip()}")

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def _log(self) -> Path:
        return self._directory / "log"

    @property
    def _surroundings(self) -> dict[str, Any]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {"cwd": self._directory, "env": environment, **self._identity}


def _identity() -> dict[str, Any]:
    """Return who the server runs as, as arguments of a subprocess: this user, or for root another one."""
    return {"user": USER, "group": USER, "extra_groups": [USER]} if os.geteuid() == 0 else {}
