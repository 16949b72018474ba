"""What an outbox needs of a connection to the host's database, whatever its driver."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from jobq.outbox.table import Dialect, Mark, NewRow, Refusal, Row, Statements

#: Values for the parameters of a statement.
Values = Sequence[Any]
#: Of a batch, the part that rows whose pause is over may take from those that were never tried: one in so many.
SHARE = 4


class Host(ABC):
    """One connection. The first half serves a host's open transaction, which it never ends; the second the relay.

    Errors of the driver come out as they are: in the host's transaction they are the host's own, and the relay knows
    that whatever is raised here is trouble with the host's database.
    """

    #: What the host's function returned, where it made the connection for the relay.
    raw: Any = None

    @property
    @abstractmethod
    def dialect(self) -> Dialect:
        """The kind of database behind it."""

    @abstractmethod
    def problem(self) -> str | None:
        """Return why the connection cannot be used, such as that it is closed; None where it can."""

    @abstractmethod
    def files(self) -> list[str]:
        """Return the files of an SQLite database, as far as they can be told without beginning a transaction."""

    @abstractmethod
    def will_commit_alone(self) -> bool:
        """Whether it is certain, without a statement, that what is staged now would be committed by itself."""

    @abstractmethod
    def commits_alone(self) -> bool:
        """Whether what is staged now would be committed by itself; may begin the host's transaction to find out."""

    @abstractmethod
    def has_table(self) -> bool:
        """Whether the table is there, as far as asking is needed: True where its lack harms no transaction."""

    @abstractmethod
    def stage(self, rows: Sequence[NewRow]) -> list[int]:
        """Insert rows in the transaction that is open, and return their numbers."""

    @abstractmethod
    def create(self) -> None:
        """Make the table in the transaction that is open, if there is one."""

    @abstractmethod
    def create_and_commit(self) -> None:
        """Make the table in a transaction of its own."""

    def waiting(self, now: int, longest: int, limit: int) -> list[Row]:
        """Return rows to publish in staged order: those never tried, and those whose pause is over.

        However many fail, those never tried get most of the batch. No pause is longer than ``longest``, so one that has
        more left was measured by a clock that has been set back, and is over.
        """
        fresh = self.fresh(limit)
        room = max(limit - len(fresh), limit // SHARE)
        again = self.again(now, room)
        ahead = self.ahead(now + longest, room - len(again))
        return sorted([*again, *ahead, *fresh[: limit - len(again) - len(ahead)]])

    @abstractmethod
    def fresh(self, limit: int) -> list[Row]:
        """Return rows that were never tried, in staged order."""

    @abstractmethod
    def again(self, now: int, limit: int) -> list[Row]:
        """Return rows that failed and whose pause is over, those first that were to be tried first."""

    @abstractmethod
    def ahead(self, then: int, limit: int) -> list[Row]:
        """Return rows that failed and whose pause ends after an instant, likewise."""

    @abstractmethod
    def note(self, marks: Sequence[Mark], refusals: Sequence[Refusal]) -> None:
        """Write down what became of rows, in one short transaction."""

    @abstractmethod
    def done(self, until: int, limit: int) -> list[tuple[str, int]]:
        """Return uid and time of rows that were published by then, the oldest first."""

    @abstractmethod
    def delete(self, uids: Sequence[str]) -> None:
        """Delete published rows, in one short transaction."""

    @abstractmethod
    def pending(self) -> tuple[int, int, int | None]:
        """Return how many rows wait, how many of them have failed, and when the oldest was staged."""

    @abstractmethod
    def next_retry(self) -> int | None:
        """Return when the pause of the first of the failed rows is over."""

    @abstractmethod
    def failing(self, limit: int) -> list[tuple[Any, ...]]:
        """Return id, kind, attempts, error, staged_at and retry_at of rows that could not be published."""


class SqlHost(Host):
    """One that speaks SQL. Drivers say how a statement is carried out."""

    statements: Statements

    @abstractmethod
    def fetch(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Carry out one statement in a transaction of its own and return every row."""

    @abstractmethod
    def write(self, changes: Sequence[tuple[str, Sequence[Values]]]) -> None:
        """Carry out each statement once for each of its values, all in one transaction of their own."""

    def fresh(self, limit: int) -> list[Row]:
        """Return rows that were never tried."""
        return [Row._make(row) for row in self.fetch(self.statements.fresh, (limit,))]

    def again(self, now: int, limit: int) -> list[Row]:
        """Return rows whose pause is over."""
        return [Row._make(row) for row in self.fetch(self.statements.again, (now, limit))]

    def ahead(self, then: int, limit: int) -> list[Row]:
        """Return rows whose pause ends after an instant."""
        return [Row._make(row) for row in self.fetch(self.statements.ahead, (then, limit))]

    def note(self, marks: Sequence[Mark], refusals: Sequence[Refusal]) -> None:
        """Write down what became of rows."""
        self.write(
            [
                (self.statements.mark, [(job_id, at, uid) for uid, job_id, at in marks]),
                (self.statements.refuse, [(error, retry_at, uid) for uid, error, retry_at in refusals]),
            ]
        )

    def done(self, until: int, limit: int) -> list[tuple[str, int]]:
        """Return uid and time of published rows."""
        return [(uid, at) for uid, at in self.fetch(self.statements.done, (until, limit))]

    def delete(self, uids: Sequence[str]) -> None:
        """Delete published rows."""
        self.write([(self.statements.delete, [(uid,) for uid in uids])])

    def pending(self) -> tuple[int, int, int | None]:
        """Return how many rows wait and have failed, and when the oldest was staged."""
        ((count, failing, oldest),) = self.fetch(self.statements.pending)
        return count, failing, oldest

    def next_retry(self) -> int | None:
        """Return when the first pause is over."""
        (row,) = self.fetch(self.statements.next_retry)
        found: int | None = row[0]
        return found

    def failing(self, limit: int) -> list[tuple[Any, ...]]:
        """Return the rows that could not be published."""
        return self.fetch(self.statements.failing, (limit,))


def lacks_table(error: BaseException) -> bool:
    """Whether a driver's error, or the one that SQLAlchemy has wrapped, says that the outbox table is missing."""
    original = getattr(error, "orig", None) or error
    if getattr(original, "sqlstate", None) == "42P01":  # undefined_table
        return True
    return "no such table" in str(original) and "jobq_outbox" in str(original)
