"""Which kind of connection something is, told by the names of its classes: no driver is imported to find out."""

from collections.abc import Callable
from typing import Any

from jobq.errors import ArgumentError
from jobq.outbox.host import Host
from jobq.outbox.memory import MemoryHost
from jobq.outbox.standard import StandardHost
from jobq.outbox.viaapsw import ApswHost
from jobq.outbox.viapsycopg import PsycopgHost
from jobq.outbox.viasqlalchemy import CoreHost, SessionHost, SqlAlchemyHost

_FIX = (
    "Give it a connection of the standard sqlite3 module, of psycopg 3 or of apsw, or an SQLAlchemy Connection or "
    "Session on SQLite or PostgreSQL."
)


def host_of(connection: Any) -> Host:
    """Return what an outbox needs of a connection.

    Raises:
        ArgumentError: it is of a kind that is not known, or to a database that an outbox cannot live in.
    """
    for cls in type(connection).__mro__:
        make = _KINDS.get((cls.__module__.partition(".")[0], cls.__name__))
        if make is not None:
            return make(connection)
    name = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise ArgumentError("connection", f"a {name} is no connection that an outbox knows", fix=_FIX)


def _core(connection: Any) -> Host:
    _check(connection.engine)
    return CoreHost(connection)


def _session(session: Any) -> Host:
    try:
        engine = session.get_bind().engine
    except Exception as error:  # SQLAlchemy's own, which is not imported here
        problem = f"the session names no database of its own ({type(error).__name__})"
        raise ArgumentError("connection", problem, fix="Give session.connection(...) of the database.") from error
    _check(engine)
    return SessionHost(session)


def _check(engine: Any) -> None:
    if not SqlAlchemyHost.knows(engine):
        driver = f"{engine.dialect.name} with the driver {engine.dialect.driver}"
        raise ArgumentError("connection", f"an outbox cannot live in {driver}", fix=_FIX)


#: By top package and name of a class.
_KINDS: dict[tuple[str, str], Callable[[Any], Host]] = {
    ("sqlite3", "Connection"): StandardHost,
    ("apsw", "Connection"): ApswHost,
    ("psycopg", "Connection"): PsycopgHost,
    ("sqlalchemy", "Connection"): _core,
    ("sqlalchemy", "Session"): _session,
    # Stands for a session of this thread's, and has not all of its attributes.
    ("sqlalchemy", "scoped_session"): lambda scoped: host_of(scoped()),
    # What engine.raw_connection() returns: a driver's connection that goes back to the pool when it is closed.
    ("sqlalchemy", "_ConnectionFairy"): lambda fairy: host_of(fairy.driver_connection),
    ("jobq", "MemoryConnection"): MemoryHost,
}
