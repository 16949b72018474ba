"""Handles that a child process inherited and must never use, close or open beside.

SQLite's table of locks is process memory and is copied by a fork: a child that has any inherited connection to a file
believes that it holds the parent's locks, so even a new connection to that file would take none. Closing an inherited
one may remove the -wal file under the parent.
"""

import os

import apsw

from jobq import fork

_spoiled: set[tuple[int, int]] = set()


def has(path: str) -> bool:
    """Tell whether this process inherited an open apsw connection to the file, ours or the host's."""
    if not _spoiled:
        return False
    try:
        found = os.stat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) in _spoiled


def keep(connections: list[apsw.Connection]) -> None:
    """Keep connections from being closed until the process has ended, the end of the interpreter included."""
    if not connections:
        return
    # Loaded only here: a fork in the middle of a transaction is rare, and a program pays for it at each start.
    import ctypes

    for connection in connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


class _Inheritance:
    def before_fork(self) -> None:
        pass

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        """Note the files of all connections that are open now; each was inherited."""
        for connection in apsw.connections():
            try:
                found = os.stat(connection.db_filename("main"))
            except (apsw.Error, OSError):
                continue
            _spoiled.add((found.st_dev, found.st_ino))


_inheritance = _Inheritance()
fork.register(_inheritance)
