"""The host's own statements on a connection of jobq's: what they may do, and carrying them out.

SQLite's authorizer decides, for every statement of a text and for what views and triggers do
(https://sqlite.org/c3ref/set_authorizer.html). It is called when a statement is compiled, so the host's are compiled
each time, past the cache, and jobq's own are compiled while nobody guards them.
"""

import re
from typing import Any

import apsw

from jobq.errors import ArgumentError, StatementRefused
from jobq.store.hosting import Bindings

#: Spaces, comments and empty statements at the beginning of a text, then its first word.
_FIRST_WORD = re.compile(r"(?:[\s;]+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*([A-Za-z]+)?", re.DOTALL)
#: Refused by their first word already, so that the answer does not depend on what the authorizer is asked.
_WORDS = frozenset(
    {
        *("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"),
        *("ATTACH", "DETACH", "PRAGMA", "VACUUM"),
    }
)
_ACTIONS = {
    apsw.SQLITE_TRANSACTION: "BEGIN, COMMIT or ROLLBACK",
    apsw.SQLITE_SAVEPOINT: "SAVEPOINT or RELEASE",
    apsw.SQLITE_ATTACH: "ATTACH",
    apsw.SQLITE_DETACH: "DETACH",
    apsw.SQLITE_PRAGMA: "PRAGMA",
    # It would live on jobq's connection, for everybody and after the block, and could hide a table of jobq's.
    apsw.SQLITE_CREATE_TEMP_TABLE: "a temporary table",
    apsw.SQLITE_CREATE_TEMP_VIEW: "a temporary view",
    apsw.SQLITE_CREATE_TEMP_TRIGGER: "a temporary trigger",
    apsw.SQLITE_CREATE_TEMP_INDEX: "a temporary index",
}
#: Full-text tables ask for it on their own account.
_HARMLESS_PRAGMA = "data_version"
_READS = frozenset(
    {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE, apsw.SQLITE_PRAGMA}
)


class Guard:
    """The authorizer of one connection; it refuses only while :attr:`on`."""

    def __init__(self) -> None:
        self.on = False
        self.read_only = False
        #: What the last guarded statement was refused for.
        self.refused: str | None = None

    def __call__(self, action: int, first: str | None, second: str | None, database: str | None, by: str | None) -> int:
        """Answer SQLite's question about one thing that a statement would do."""
        if not self.on:
            return apsw.SQLITE_OK
        self.refused = self._problem(action, first or "", second or "")
        return apsw.SQLITE_OK if self.refused is None else apsw.SQLITE_DENY

    def _problem(self, action: int, first: str, second: str) -> str | None:
        if action == apsw.SQLITE_PRAGMA and first.lower() == _HARMLESS_PRAGMA:
            return None
        if action in _ACTIONS:
            return _ACTIONS[action]
        if action in _READS:
            return None
        if self.read_only:
            return "a write"
        # An index, a trigger and a change of a table name the table second.
        if first.lower().startswith("jobq_") or second.lower().startswith("jobq_"):
            return "a write to a table of jobq's"
        return None


def guard_of(connection: apsw.Connection) -> Guard:
    """Return the guard of a connection, which it gets with the host's first statement and then keeps."""
    found = connection.authorizer
    if not isinstance(found, Guard):
        # Once for each connection: setting it makes SQLite compile everything anew.
        found = connection.authorizer = Guard()
    return found


def run(connection: apsw.Connection, sql: str, bindings: Bindings, *, read_only: bool) -> list[tuple[Any, ...]]:
    """Carry out the host's statements and return every row.

    Raises:
        StatementRefused: one of them is not for the host; those before it in the text have run.
        ArgumentError: it is no text.
        apsw.Error: what SQLite says of the statement itself, or of the database.
    """
    if not isinstance(sql, str):
        raise ArgumentError("sql", f"text is needed, not a {type(sql).__name__}")
    found = _FIRST_WORD.match(sql)
    word = (found[1] or "").upper() if found else ""
    if word in _WORDS:
        raise StatementRefused(word)
    guard = guard_of(connection)
    guard.on, guard.read_only, guard.refused = True, read_only, None
    try:
        return connection.execute(sql, bindings, can_cache=False).fetchall()
    except apsw.AuthError:
        if guard.refused is None:
            raise
        raise StatementRefused(guard.refused) from None
    except apsw.SQLError as error:
        # The one statement of those that no authorizer is asked about.
        if "VACUUM" not in str(error):
            raise
        raise StatementRefused("VACUUM") from None
    except apsw.ReadOnlyError:
        if read_only:
            raise StatementRefused("a write") from None
        raise
    finally:
        guard.on = False
