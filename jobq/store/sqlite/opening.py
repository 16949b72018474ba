"""How the engine comes by connections: the first look at a file, and every opening after it."""

import os
from collections.abc import Callable, Sequence

import apsw

from jobq.errors import ForkedHandle
from jobq.store.sqlite import connection as connections
from jobq.store.sqlite import foreign, inherited, migrate
from jobq.store.sqlite.connection import DatabaseFile
from jobq.store.sqlite.faults import damage, reraise
from jobq.store.sqlite.migrate import Migration


class Opening:
    """Makes connections to one file, and makes sure each time that it is the file that was prepared."""

    def __init__(self, file: DatabaseFile, migrations: Sequence[Migration], *, vfs: str | None) -> None:
        self._file = file
        self._migrations = migrations
        self._version = migrations[-1].number if migrations else 0
        self._vfs = vfs

    def prepare(self, *, create: bool, busy_timeout: float, now: Callable[[], int]) -> None:
        """Check the file, make or migrate it, and close it again.

        This alone may create the file, and a job queue in a file, where ``create`` says so. Where it raises, an
        existing file is as it was.
        """
        path = self._file.path
        if inherited.has(path):
            raise ForkedHandle(path)
        foreign.check(path)
        migrate.look(path, self._version, create=create, vfs=self._vfs)
        connection = self._connect(busy_timeout, create=create and not os.path.exists(path))
        try:
            migrate.refuse_newer(path, migrate.version(connection), self._version)
            migrate.prepare(connection, busy_timeout=busy_timeout)
            migrate.migrate(connection, path, self._migrations, now)
            self._file.remember()
        except apsw.SQLError as exc:
            raise damage(exc, path) from exc
        except apsw.Error as exc:
            reraise(exc, path, errno=connection.system_errno)
        finally:
            connections.close(connection)

    def open(self, busy_timeout: float, *, alone: bool) -> apsw.Connection:
        """Open the file again; ``alone`` where no other handle on it is open, so that nothing was torn away."""
        if alone:
            self._file.check_closed()
        else:
            self._file.check()
        connection = self._connect(busy_timeout, create=False)
        try:
            self._file.check()
            migrate.check_current(connection, self._file.path, self._version)
        except apsw.Error as exc:
            errno = connection.system_errno
            connections.close(connection)
            reraise(exc, self._file.path, errno=errno)
        except BaseException:
            connections.close(connection)
            raise
        return connection

    def _connect(self, busy_timeout: float, *, create: bool) -> apsw.Connection:
        try:
            return connections.connect(self._file.path, create=create, vfs=self._vfs, busy_timeout=busy_timeout)
        except apsw.SQLError as exc:
            raise damage(exc, self._file.path) from exc
        except apsw.Error as exc:
            reraise(exc, self._file.path)
