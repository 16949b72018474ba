"""The part of the SQLite store that is about schedules; its contract is :mod:`jobq.store.scheduling`."""

from collections.abc import Collection, Sequence

from jobq.model.scheduled import Dispatched, Rule, ScheduleInfo
from jobq.store.scheduling import Attempts, ScheduleOutlook, Ticked
from jobq.store.sqlite import leaders, schedules, ticks
from jobq.store.sqlite.transactions import Transactions


class SqliteSchedules(Transactions):
    """Schedules, their ticks, and who leads."""

    def put_schedules(self, rules: Sequence[Rule], *, sweep: Collection[str] = ()) -> list[ScheduleInfo]:
        """Write rules under their names."""
        return self._write(lambda conn, _: schedules.put(conn, rules, sweep=sweep, now=self._now()))

    def remove_schedule(self, name: str) -> bool:
        """Remove a schedule."""
        return self._write(lambda conn, _: schedules.remove(conn, name))

    def pause_schedule(self, name: str, *, who: str | None, why: str | None) -> bool:
        """Let no slot fire."""
        return self._write(lambda conn, _: schedules.pause(conn, name, who=who, why=why, now=self._now()))

    def resume_schedule(self, name: str) -> bool:
        """Let slots fire again."""
        return self._write(lambda conn, _: schedules.resume(conn, name))

    def schedules(self, names: Sequence[str] | None = None) -> list[ScheduleInfo]:
        """Return schedules."""
        return self._read(lambda conn: schedules.schedules(conn, names))

    def look_schedules(self) -> ScheduleOutlook:
        """Say what a tick would find."""
        return self._read(lambda conn: ticks.look(conn, now=self._now()))

    def tick_schedules(self, names: Sequence[str], *, attempts: Attempts) -> Ticked:
        """Enqueue what is due and move on."""
        return self._write(
            lambda conn, changes: ticks.tick(conn, changes, names, attempts=attempts, now=self._now())
        )

    def run_schedule(self, name: str, *, attempts: Attempts, actor: str | None = None) -> list[Dispatched]:
        """Enqueue the entries now."""
        return self._write(
            lambda conn, changes: ticks.run(conn, changes, name, attempts=attempts, actor=actor, now=self._now())
        )

    def lead(self, name: str, holder: str, *, length: float) -> bool:
        """Take or renew the lead; a reader answers where nothing has to be written."""
        standing = self._read(lambda conn: leaders.look(conn, name, holder, now=self._now()))
        if standing is not None:
            return standing
        return self._write(
            lambda conn, _: leaders.lead(conn, name, holder, length=length, now=self._now()), durable=False
        )

    def resign(self, name: str, holder: str) -> None:
        """Give the lead up."""
        self._write(lambda conn, _: leaders.resign(conn, name, holder), durable=False)
