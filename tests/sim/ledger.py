"""What was acknowledged and told in a simulated world, and whether the rows agree with it.

The numbers are those of the guarantees in README.rst.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from jobq.model.events import JobStateChanged
from tests.sim.rows import Row, Rows

#: Which states a job may be found in, one transaction after another state.
MAY_BECOME = {
    "queued": {"queued", "running", "failed", "cancelled"},
    "running": {"running", "queued", "succeeded", "failed", "cancelled"},
    "succeeded": {"succeeded"},
    "failed": {"failed", "queued", "running"},
    "cancelled": {"cancelled", "queued", "running"},
}


class Ledger:
    """Everything that must stay true of what has happened; :meth:`check` compares it with the rows."""

    def __init__(self, caps: Mapping[str, int]) -> None:
        self._caps = caps
        self._before: Rows = {}
        #: Ids of jobs whose enqueue was acknowledged, and of ended ones that were pruned.
        self.acknowledged: set[int] = set()
        self.pruned: set[int] = set()
        #: The tokens under which a run was settled, and those of runs that counted.
        self._settled: set[str] = set()
        self._starts: Counter[int] = Counter()
        self._uncounted: Counter[int] = Counter()
        self._highest = 0
        #: Subjects of jobs that were staged in an outbox and committed there, and the jobs that came of them.
        self.staged: set[str] = set()
        self._published: dict[str, int] = {}
        self._slots: dict[tuple[str, int], int] = {}
        self._told: dict[int, str] = {}
        #: What events said that cannot be; a listener's own error would only be logged.
        self._untrue: list[str] = []

    @property
    def rows(self) -> Rows:
        """The rows as of the last check."""
        return self._before

    def settle(self, token: str, *, written: bool) -> None:
        """Note the answer to a settle: (3) of two claims of a job never both settle, the token is the fence."""
        holder = next((row for row in self._before.values() if row.token == token), None)
        assert written == (holder is not None), "the fence let an old token through, or refused the present one"
        if written:
            assert token not in self._settled, "a run was settled twice"
            self._settled.add(token)

    def uncounted(self, job_id: int) -> None:
        """Note that the last run of a job does not count."""
        self._uncounted[job_id] += 1

    def forget_attempts(self, job_id: int) -> None:
        """Note that a job begins from the start."""
        self._starts[job_id] = self._uncounted[job_id] = 0

    def hear(self, event: JobStateChanged) -> None:
        """Note an event: (10) for one job they come in the order of the commits, without a gap."""
        told = self._told.get(event.job_id)
        if event.previous != told:
            self._untrue.append(f"job {event.job_id} was {told}, and an event says {event.previous}")
        self._told[event.job_id] = str(event.state)

    def check(self, rows: Rows) -> None:
        """Compare the rows with the last ones and with what was acknowledged."""
        assert not self._untrue, self._untrue
        for id, row in rows.items():
            before = self._before.get(id)
            if before is not row:
                self._check_row(before, row)
        self._check_gone(rows)
        self._check_keys(rows.values())
        self._check_caps(rows.values())
        assert {id: row.state for id, row in rows.items()} == {
            id: state for id, state in self._told.items() if id in rows
        }, "(10) the events do not lead to what the rows say"
        self._before = rows

    def _check_row(self, before: Row | None, row: Row) -> None:
        if before is None:
            assert row.id > self._highest, "(8.6) an id was used again"
            self._highest = max(self._highest, row.id)
            self._check_slot(row)
            self._check_outbox(row)
        else:
            assert row.state in MAY_BECOME[before.state], f"{before.state} became {row.state}"
        if row.token is not None and (before is None or before.token != row.token):
            self._starts[row.id] += 1
            counted = self._starts[row.id] - self._uncounted[row.id]
            assert counted <= row.max_attempts, "(5) a job was started more often than it has attempts"
        assert row.attempts <= row.max_attempts

    def _check_slot(self, row: Row) -> None:
        if row.schedule is not None and row.slot is not None:
            slot = (row.schedule, row.slot)
            assert slot not in self._slots, "(9) a slot was enqueued twice"
            self._slots[slot] = row.id

    def _check_outbox(self, row: Row) -> None:
        if row.subject is not None:
            assert row.subject in self.staged, "a job came of a row that was rolled back"
            assert row.subject not in self._published, "a row of the outbox made two jobs"
            self._published[row.subject] = row.id

    def unpublished(self) -> set[str]:
        """Return what was staged and committed and has no job."""
        return self.staged - self._published.keys()

    def _check_gone(self, rows: Rows) -> None:
        for id in self._before.keys() - rows.keys():
            assert not self._before[id].live, "(1) a live job is gone"
            self.pruned.add(id)
        lost = self.acknowledged - rows.keys() - self.pruned
        assert not lost, f"(1) acknowledged jobs are gone: {lost}"

    def _check_keys(self, rows: Iterable[Row]) -> None:
        keys = Counter(row.dedupe_key for row in rows if row.live and row.dedupe_key is not None)
        assert not keys or max(keys.values()) == 1, "(6) two live jobs have one dedupe key"

    def _check_caps(self, rows: Iterable[Row]) -> None:
        running = Counter(row.kind for row in rows if row.state == "running")
        for kind, cap in self._caps.items():
            assert running[kind] <= cap, "(7) more jobs of a kind run than its cap allows"
