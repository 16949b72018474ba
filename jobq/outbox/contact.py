"""Making, checking and closing the relay's connections to the host's database."""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from jobq.errors import JobqError, OutboxTableMissing, OutboxUnavailable
from jobq.outbox.host import Host, lacks_table
from jobq.outbox.kinds import host_of
from jobq.outbox.staging import refuse_unfit

T = TypeVar("T")

#: What PostgreSQL answers where somebody else was faster: serialization failure, deadlock, lock not available.
_CONTENDED = frozenset({"40001", "40P01", "55P03"})
#: Inherited through a fork: to close one, or to let it go, might harm the parent.
_abandoned: list[Host] = []


class Contact:
    """Makes connections by the host's function; safe to use from any thread."""

    def __init__(self, connect: Callable[[], Any], *, path: str) -> None:
        self._connect = connect
        self._path = path

    def open(self) -> Host:
        """Return a new connection.

        Raises:
            OutboxUnavailable: the host's function raised, or returned a connection that is closed.
            ArgumentError: it returned something that is no connection.
            ForeignHandle: it has opened jobq's own file.
        """
        try:
            connection = self._connect()
        except Exception as error:
            raise self.trouble(error) from error
        try:
            host = host_of(connection)
            host.raw = connection
            refuse_unfit(host, self._path)
        except BaseException:
            _close(connection)
            raise
        return host

    def close(self, host: Host) -> None:
        """Close a connection; one that cannot be closed is broken already."""
        _close(host.raw)

    def abandon(self, hosts: list[Host]) -> None:
        """Keep connections of the parent process as they are."""
        _abandoned.extend(hosts)

    def ask(self, call: Callable[..., T], *arguments: Any) -> T:
        """Call the host's database; whatever its driver raises is trouble with it.

        Raises:
            OutboxUnavailable, OutboxTableMissing: in place of the driver's error.
        """
        try:
            return call(*arguments)
        except Exception as error:
            raise self.trouble(error) from error

    @staticmethod
    def trouble(error: Exception) -> JobqError:
        """Return what a driver's error means. Its text may quote values, so only its class is named."""
        if isinstance(error, JobqError):
            return error
        if lacks_table(error):
            return OutboxTableMissing()
        original = getattr(error, "orig", None) or error
        code = getattr(original, "sqlstate", None) or getattr(original, "sqlite_errorname", None)
        busy = code in _CONTENDED or "SQLITE_BUSY" in (code or "") or type(original).__name__ == "BusyError"
        name = f"{type(original).__name__}{f' ({code})' if code else ''}"
        return OutboxUnavailable(name, busy=busy)


def _close(connection: Any) -> None:
    with contextlib.suppress(Exception):
        connection.close()
