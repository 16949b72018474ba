"""What verbs cost, counted in steps of SQLite's virtual machine and in statements: never more for a longer backlog."""

from collections.abc import Callable
from typing import Any

import apsw
import pytest

from jobq.model.lease import Claim, Settlement
from jobq.model.outcome import Failed, Succeeded
from jobq.store.base import Draft, Filter
from jobq.store.sqlite.store import SqliteStore
from tests.store.bench import LEASE, Workbench, draft, ids, request

#: What more rows may add: a few steps where a page of an index is full.
SLACK = 1.05


class Meter:
    """Counts the work of the writing connection."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.statements: list[str] = []
        self.steps = 0
        self.scanned = 0

    def measure(self, verb: Callable[[], Any]) -> Any:
        """Call the verb and return what it returned; the counters hold its work alone."""
        self.statements, self.steps, self.scanned = [], 0, 0
        self._trace(self._count)
        try:
            return verb()
        finally:
            self._trace(None)

    def _trace(self, listener: Callable[[dict[str, Any]], None] | None) -> None:
        mask = apsw.SQLITE_TRACE_PROFILE if listener else 0
        self._store.engine.write(lambda conn, _: conn.trace_v2(mask, listener), sync=False, busy_timeout=1)

    def _count(self, event: dict[str, Any]) -> None:
        self.statements.append(event["sql"])
        self.steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
        self.scanned += event["stmt_status"]["SQLITE_STMTSTATUS_FULLSCAN_STEP"]


@pytest.fixture
def meter(bench: Workbench) -> Meter:
    """A meter on the writer of the bench's store."""
    assert isinstance(bench.store, SqliteStore)
    return Meter(bench.store)


def _pause(bench: Workbench, kinds: list[str]) -> None:
    bench.enqueue("paused", queue="mail", delay=1)
    bench.store.pause("mail", who=None, why=None)


def _cap(bench: Workbench, kinds: list[str]) -> None:
    bench.register("capped", cap=1)
    bench.start("capped")


def _pause_kind(bench: Workbench, kinds: list[str]) -> None:
    kinds.append("halted")
    bench.enqueue("halted", delay=1)
    bench.store.pause_kind("halted", who=None, why=None)


OBSTACLES: dict[str, tuple[Draft, Callable[[Workbench, list[str]], object]]] = {
    "capped": (draft("capped", priority=1000), _cap),
    "paused": (draft("paused", queue="mail", priority=1000), _pause),
    "of-a-paused-kind": (draft("halted", priority=1000), _pause_kind),
    "future": (draft("future", priority=1000, delay=3600), lambda bench, kinds: kinds.append("future")),
    "future-in-the-same-lane": (draft("a", delay=3600), lambda bench, kinds: None),
    "unknown": (draft("unknown", priority=1000), lambda bench, kinds: None),
    "gated": (draft("gated", priority=1000), lambda bench, kinds: kinds.append("gated")),
    "retired": (draft("old", priority=1000), lambda bench, kinds: kinds.append("old")),
    "behind-in-the-same-lane": (draft("a"), lambda bench, kinds: None),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_b63_a_claim_costs_the_same_behind_ten_thousand_rows(bench: Workbench, meter: Meter, obstacle: str) -> None:
    """Same statements, same steps as behind ten of them; a look as well."""
    row, arrange = OBSTACLES[obstacle]
    kinds = ["a", "capped", "paused"]
    arrange(bench, kinds)
    bench.store.enqueue([row] * 10)
    if obstacle == "retired":
        bench.store.register([], [], ["old"])
    wanted = request(kinds=tuple(kinds), gates={"gated": "g"})

    def claim() -> tuple[list[Claim], int, int]:
        job_id = bench.enqueue("a", run_at=bench.after(-60))
        claims = meter.measure(lambda: bench.store.claim(wanted, durable=False))
        assert ids(claims) == [job_id]
        cost = meter.steps, len(meter.statements)
        bench.settle(claims[0], Succeeded())
        return claims, *cost

    _, few_steps, few_statements = claim()
    if obstacle == "retired":
        bench.register("old")
    bench.store.enqueue([row] * 10_000)
    if obstacle == "retired":
        bench.store.register([], [], ["old"])
    _, many_steps, many_statements = claim()
    assert many_statements == few_statements
    assert many_steps <= few_steps * SLACK


def test_ended_jobs_cost_a_claim_nothing(bench: Workbench, meter: Meter) -> None:
    """What was done last week is in no index that a claim reads."""
    bench.store.enqueue([draft("a")] * 2000)
    first = meter.measure(bench.claim)
    few = meter.steps
    claims = [*first, *bench.claim(hand=1000)]
    bench.store.settle([Settlement(claim.id, claim.token, Succeeded()) for claim in claims], durable=False)
    assert len(meter.measure(bench.claim)) == 1
    assert meter.steps <= few * SLACK


def test_settling_costs_the_same_whatever_waits(bench: Workbench, meter: Meter) -> None:
    """One read, one write."""
    one, two = bench.start(), bench.start()
    meter.measure(lambda: bench.settle(one, Succeeded()))
    few = meter.steps
    bench.store.enqueue([draft("a")] * 5000)
    meter.measure(lambda: bench.settle(two, Succeeded()))
    assert meter.steps <= few * SLACK


def test_an_idle_claim_is_a_handful_of_statements(bench: Workbench, meter: Meter) -> None:
    """It looks for the first rows; then for expired leases if there are none, for what is below one that is not due."""
    counts = []
    for _ in range(2):
        meter.measure(lambda: bench.claim(kinds=("a",), queues=("default",)))
        counts.append(len([text for text in meter.statements if "SELECT" in text]))
        bench.enqueue(delay=60)
    assert counts == [2, 2]


def test_beats_are_one_statement_for_all_leases(bench: Workbench, meter: Meter) -> None:
    """However many run."""
    for _ in range(50):
        bench.enqueue()
    leases = [(claim.id, claim.token) for claim in bench.claim(hand=50)]
    assert len(meter.measure(lambda: bench.store.extend(leases, durable=False))) == 50
    assert len([text for text in meter.statements if "UPDATE" in text]) == 1


def test_retiring_a_kind_reads_its_own_rows_alone(bench: Workbench, meter: Meter) -> None:
    """A runner retires at each start; a million others waiting must not cost it anything."""
    bench.store.enqueue([draft("a")] * 10)
    assert meter.measure(lambda: bench.store.retire(["old"])) == 0
    few = meter.steps
    bench.store.enqueue([draft("a")] * 5000)
    assert meter.measure(lambda: bench.store.retire(["old"])) == 0
    assert meter.steps <= few * SLACK


def test_a_repeated_enqueue_under_a_held_key_writes_nothing(bench: Workbench, elsewhere: Workbench) -> None:
    """No other process is woken by it, and no commit synced."""
    bench.enqueue(dedupe_key="k")
    before = elsewhere.store.data_version()
    assert not bench.place(dedupe_key="k").created
    assert elsewhere.store.data_version() == before


def test_large_texts_live_beside_and_are_not_rewritten(bench: Workbench) -> None:
    """Claim, retry and success of a job with a megabyte move a few pages through the WAL, not the megabyte."""
    store = bench.store
    assert isinstance(store, SqliteStore)
    job_id = bench.enqueue(payload='"' + "x" * 1_000_000 + '"')
    store.checkpoint()
    before = store.engine.status().wal_bytes
    (claim,) = bench.claim()
    assert len(claim.payload) == 1_000_002
    bench.settle(claim, Failed(error="x"))
    bench.clock.advance(LEASE)
    bench.settle(bench.claim()[0], Succeeded())
    assert store.engine.status().wal_bytes - before < 200_000
    assert bench.get(job_id).payload == "x" * 1_000_000


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        pytest.param('"' + "x" * 1998 + '"', False, id="2000-characters"),
        pytest.param('"' + "x" * 1999 + '"', True, id="2001-characters"),
        pytest.param('"' + "字" * 666 + '"', False, id="2000-bytes"),
        pytest.param('"' + "字" * 667 + '"', True, id="2003-bytes"),
    ],
)
def test_texts_of_more_than_two_thousand_bytes_live_beside(bench: Workbench, text: str, beside: bool) -> None:
    """Payload and result alike; an UPDATE rewrites its whole row."""
    store = bench.store
    assert isinstance(store, SqliteStore)
    claim = bench.start(payload=text)
    bench.settle(claim, Succeeded(text))
    (row,) = store.engine.read(
        lambda conn: conn.execute(
            "SELECT payload IS NULL, result IS NULL, (SELECT count(*) FROM jobq_payload),"
            " (SELECT count(*) FROM jobq_result) FROM jobq_job"
        ).fetchall(),
        busy_timeout=1,
    )
    assert row == (beside, beside, beside, beside)


def test_b54_a_listing_does_not_touch_the_large_texts(bench: Workbench) -> None:
    """No statement of find() names the columns or the side tables."""
    store = bench.store
    assert isinstance(store, SqliteStore)
    seen: list[str] = []
    bench.enqueue(payload='"' + "x" * 5000 + '"')

    def listen(event: dict[str, Any]) -> None:
        seen.append(event["sql"])

    store.engine.read(lambda conn: conn.trace_v2(apsw.SQLITE_TRACE_STMT, listen), busy_timeout=1)
    assert len(store.find(Filter(), limit=None)) == 1
    assert any("jobq_job" in text for text in seen)
    assert not any("payload" in text or "result" in text for text in seen)
