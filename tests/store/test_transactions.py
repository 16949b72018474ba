"""A transaction that a thread keeps open, a snapshot, and the follow-ups of a settled run."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import apsw
import pytest

from jobq.errors import ArgumentError, DedupeConflict, StatementRefused, StoreBusy, TransactionEnded
from jobq.model.effects import Verdict
from jobq.model.job import JobState
from jobq.model.lease import Settlement
from jobq.model.outcome import Failed, Outcome, Succeeded
from jobq.store.base import Draft, Filter
from jobq.store.hosting import HostTransaction
from tests.aborting import aborted, failing
from tests.store.bench import Stores, Workbench, draft


def nothing() -> None:
    """Do nothing."""


@contextmanager
def transaction(bench: Workbench, **hooks: Callable[[], None]) -> Iterator[HostTransaction]:
    """Open a transaction on the bench's store."""
    with bench.store.transaction(**{"on_commit": nothing, "on_blocked": nothing, **hooks}) as opened:
        yield opened


@pytest.fixture
def table(bench: Workbench) -> None:
    """A table of the host's."""
    with transaction(bench) as tx:
        tx.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, part INTEGER) STRICT")


def rows(bench: Workbench) -> list[tuple[Any, ...]]:
    """Return the host's rows as others see them."""
    with bench.store.snapshot() as read:
        return read("SELECT id FROM item ORDER BY id")


def every(state: JobState | None = None) -> Filter:
    """Return the filter that all jobs pass, or all in a state."""
    return Filter(state=state)


def elsewhere_in_a_thread(call: Callable[[], Any]) -> Any:
    """Return what a call returns on another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(20)


@pytest.mark.usefixtures("table")
def test_rows_and_jobs_are_committed_together(bench: Workbench, elsewhere: Workbench) -> None:
    """Nobody sees either before the end of the block, and the thread itself sees both."""
    with transaction(bench) as tx:
        tx.execute("INSERT INTO item (id) VALUES (?)", (1,))
        job_id = bench.enqueue()
        assert bench.state(job_id) == JobState.QUEUED
        assert tx.execute("SELECT count(*) FROM jobq_job WHERE id = :id", {"id": job_id}) == [(1,)]
        assert rows(bench) == [(1,)]
        assert rows(elsewhere) == []
        assert elsewhere.store.get([job_id]) == {}
        assert bench.feed == []

    assert rows(elsewhere) == [(1,)]
    assert elsewhere.state(job_id) == JobState.QUEUED
    assert [change.job_id for change in bench.feed] == [job_id]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_rolls_all_of_it_back(bench: Workbench, error: type[BaseException]) -> None:
    """Whatever it is: no row, no job, nothing in the feed, no word of a commit; and the writer is free again."""
    told: list[str] = []
    with aborted(transaction(bench, on_commit=lambda: told.append("committed")), error()) as tx:
        tx.execute("INSERT INTO item (id) VALUES (1)")
        bench.enqueue()

    assert (rows(bench), bench.feed, told) == ([], [], [])
    assert elsewhere_in_a_thread(bench.enqueue)


def test_a_commit_is_told_after_the_changes_were_fed(bench: Workbench) -> None:
    """Whoever hears of it finds them there."""
    seen: list[int] = []
    with transaction(bench, on_commit=lambda: seen.append(len(bench.feed))):
        bench.enqueue()

    assert seen == [1]


@pytest.mark.usefixtures("table")
def test_a_block_inside_the_block_is_a_savepoint(bench: Workbench) -> None:
    """Its exception undoes what was done in it, changes for the feed included, and no more."""
    with transaction(bench) as tx:
        first = bench.enqueue()
        with aborted(transaction(bench)) as inner:
            inner.execute("INSERT INTO item (id) VALUES (1)")
            bench.enqueue()
        with transaction(bench) as inner:
            inner.execute("INSERT INTO item (id) VALUES (2)")
        tx.execute("INSERT INTO item (id) VALUES (3)")

    assert rows(bench) == [(2,), (3,)]
    assert [change.job_id for change in bench.feed] == [first]


def test_a_verb_fails_alone(bench: Workbench) -> None:
    """What a refused enqueue wrote before it was refused is undone, and the block goes on."""
    bench.enqueue("a", dedupe_key="k")
    with transaction(bench):
        with pytest.raises(DedupeConflict):
            bench.store.enqueue([draft("c"), draft("b", dedupe_key="k")])
        kept = bench.enqueue("d")

    assert [job.kind for job in bench.store.find(every(), limit=None)] == ["d", "a"]
    assert bench.state(kept) == JobState.QUEUED
    assert [kind.name for kind in bench.store.kinds()] == ["a", "d"]
    assert len(bench.feed) == 2


def test_the_other_store_of_the_thread_joins(bench: Workbench, stores: Stores) -> None:
    """One file has one writer: a second store on it would wait for itself."""
    other = stores.bench()
    with aborted(transaction(bench)):
        job_id = other.enqueue()
        assert bench.state(job_id) == JobState.QUEUED

    assert bench.store.get([job_id]) == {}


@pytest.mark.usefixtures("table")
def test_another_thread_waits_and_does_not_join(bench: Workbench) -> None:
    """Its write comes after the block and survives its rollback; its reads do not see the block's writes."""
    started = threading.Event()
    with ThreadPoolExecutor(1) as pool:

        def enqueue() -> int:
            started.set()
            return bench.enqueue()

        with aborted(transaction(bench)) as tx:
            tx.execute("INSERT INTO item (id) VALUES (1)")
            mine = bench.enqueue()
            assert pool.submit(rows, bench).result(20) == []
            assert pool.submit(bench.store.get, [mine]).result(20) == {}
            waiting = pool.submit(enqueue)
            assert started.wait(20)
        theirs = waiting.result(20)

    assert bench.state(theirs) == JobState.QUEUED
    assert [change.job_id for change in bench.feed] == [theirs]


def test_b17_a_waiting_enqueue_of_the_same_key_makes_the_one_job(bench: Workbench) -> None:
    """The holder of the key rolls back; the other enqueue, which waited, created the job that it names."""
    started = threading.Event()
    with ThreadPoolExecutor(1) as pool:

        def enqueue() -> Any:
            started.set()
            return bench.place(dedupe_key="k")

        with aborted(transaction(bench)):
            bench.enqueue(dedupe_key="k")
            waiting = pool.submit(enqueue)
            assert started.wait(20)
        placed = waiting.result(20)

    assert placed.created
    (only,) = bench.store.find(every(), limit=None)
    assert (only.id, only.dedupe_key, only.state) == (placed.id, "k", JobState.QUEUED)


def test_who_waits_in_vain_is_busy_and_says_so(bench: Workbench, stores: Stores) -> None:
    """The block is told of it, so that it can report itself."""
    blocked = threading.Event()
    with transaction(bench, on_blocked=blocked.set), pytest.raises(StoreBusy):
        elsewhere_in_a_thread(stores.bench(busy_timeout=0.01).enqueue)

    assert blocked.is_set()


@pytest.mark.parametrize(
    "sql",
    [
        "BEGIN", "begin immediate", "COMMIT", "END", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a",
        "ATTACH ':memory:' AS other", "DETACH main", "PRAGMA user_version = 3", "PRAGMA user_version", "VACUUM",
        "-- a comment\n /* and\n another */ ; COMMIT", "INSERT INTO item (id) VALUES (9); COMMIT",
        "INSERT INTO item (id) VALUES (9);\n/* */ SAVEPOINT x", "SELECT 1; PRAGMA journal_mode = DELETE",
        "INSERT INTO item (id) VALUES (9); VACUUM", "CREATE TEMP TABLE jobq_job (id)", "CREATE TEMP VIEW v AS SELECT 1",
        "DELETE FROM jobq_job", "UPDATE JOBQ_job SET state = 'queued'", "INSERT INTO jobq_queue (name) VALUES ('x')",
        "DROP TABLE jobq_job", "ALTER TABLE jobq_job ADD COLUMN x", "CREATE TABLE jobq_mine (id)",
        "CREATE INDEX mine ON jobq_job (kind)",
        "CREATE TRIGGER mine AFTER INSERT ON jobq_job BEGIN SELECT 1; END",
        "CREATE TRIGGER t AFTER INSERT ON item BEGIN DELETE FROM jobq_job; END; INSERT INTO item (id) VALUES (9)",
        "WITH x AS (SELECT 1) DELETE FROM jobq_job",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("table")
def test_what_is_not_for_the_host_is_refused(bench: Workbench, sql: str) -> None:
    """Wherever in a text it stands; nothing of the text is done, and the block goes on."""
    with transaction(bench) as tx:
        job_id = bench.enqueue()
        with pytest.raises(StatementRefused) as caught:
            tx.execute(sql)
        tx.execute("INSERT INTO item (id) VALUES (1)")

    assert caught.value.fix
    assert rows(bench) == [(1,)]
    assert bench.state(job_id) == JobState.QUEUED


@pytest.mark.usefixtures("table")
def test_sql_is_text(bench: Workbench) -> None:
    """Anything else is a typed error."""
    with transaction(bench) as tx, pytest.raises(ArgumentError):
        tx.execute(7)  # type: ignore[arg-type]


@pytest.mark.usefixtures("table")
def test_words_of_transactions_in_harmless_places_pass(bench: Workbench) -> None:
    """It is the statement that counts, not its text; and full-text tables work."""
    with transaction(bench) as tx:
        assert tx.execute("SELECT 'COMMIT; BEGIN' -- ROLLBACK") == [("COMMIT; BEGIN",)]
        tx.execute("CREATE VIRTUAL TABLE words USING fts5 (body); INSERT INTO words VALUES ('commit the vacuum')")
        assert tx.execute("SELECT count(*) FROM words ('vacuum')") == [(1,)]
        assert tx.execute("") == []
        assert tx.execute("-- nothing") == []


@pytest.mark.usefixtures("table")
def test_a_text_is_done_whole_or_not_at_all(bench: Workbench) -> None:
    """What SQLite says of a statement comes as it is, and the statements before it are undone."""
    with transaction(bench) as tx:
        tx.execute("INSERT INTO item (id) VALUES (?); INSERT INTO item (id) VALUES (?)", (1, 2))
        with pytest.raises(apsw.ConstraintError):
            tx.execute("INSERT INTO item (id) VALUES (3); INSERT INTO item (id) VALUES (1)")
        with pytest.raises(apsw.SQLError):
            tx.execute("SELEKT")
        rest = tx.execute("INSERT INTO item (id) VALUES (4), (5) RETURNING id")

    assert rest == [(4,), (5,)]
    assert rows(bench) == [(1,), (2,), (4,), (5,)]


@pytest.mark.usefixtures("table")
def test_jobqs_own_statements_are_not_guarded(bench: Workbench) -> None:
    """Not after the host's either, on the same connection, inside the block and after it."""
    with transaction(bench) as tx:
        tx.execute("SELECT 1")
        bench.enqueue("new", queue="other")
    claim = bench.claim(kinds=("new",))[0]

    assert bench.settle(claim, Succeeded()) == Verdict.SUCCEEDED


@pytest.mark.usefixtures("table")
def test_a_transaction_that_sqlite_rolled_back_is_over(bench: Workbench) -> None:
    """Nothing may be written as if it still were one: what follows, and the end of the block, say so."""
    with failing(transaction(bench), TransactionEnded) as tx:
        bench.enqueue()
        tx.execute("INSERT INTO item (id) VALUES (1)")
        with pytest.raises(apsw.ConstraintError):
            tx.execute("INSERT OR ROLLBACK INTO item (id) VALUES (1)")
        with pytest.raises(TransactionEnded):
            bench.enqueue()
        with pytest.raises(TransactionEnded):
            tx.execute("INSERT INTO item (id) VALUES (2)")

    assert (rows(bench), bench.feed) == ([], [])
    assert bench.enqueue()


@pytest.mark.usefixtures("table")
def test_a_commit_that_sqlite_refuses_leaves_nothing(bench: Workbench) -> None:
    """A deferred constraint fails at the end of the block."""
    with transaction(bench) as tx:
        tx.execute("CREATE TABLE leaf (item INTEGER REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED)")
    with failing(transaction(bench), apsw.ConstraintError) as tx:
        bench.enqueue()
        tx.execute("INSERT INTO leaf VALUES (77)")

    assert bench.feed == []
    assert bench.store.find(every(), limit=None) == []


def test_a_transaction_belongs_to_its_block_and_thread(bench: Workbench) -> None:
    """Used elsewhere it does nothing."""
    with transaction(bench) as tx, pytest.raises(TransactionEnded):
        elsewhere_in_a_thread(lambda: tx.execute("SELECT 1"))
    with pytest.raises(TransactionEnded):
        tx.execute("SELECT 1")


@pytest.mark.usefixtures("table")
def test_a_snapshot_stands_still(bench: Workbench, elsewhere: Workbench) -> None:
    """It sees the instant at which it was opened; verbs beside it see the present; nobody waits for it."""
    with bench.store.snapshot() as read:
        with transaction(elsewhere) as tx:
            tx.execute("INSERT INTO item (id) VALUES (1)")
        job_id = bench.enqueue()
        assert read("SELECT count(*) FROM item") == [(0,)]
        assert read("SELECT count(*) FROM jobq_job") == [(0,)]
        assert bench.state(job_id) == JobState.QUEUED
    with pytest.raises(TransactionEnded):
        read("SELECT 1")
    assert rows(bench) == [(1,)]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize(
    "sql", ["INSERT INTO item (id) VALUES (1)", "SELECT 1; DELETE FROM item", "COMMIT", "PRAGMA query_only = 0"]
)
def test_a_snapshot_only_reads(bench: Workbench, sql: str, inside: bool) -> None:
    """Also where the connection below it could write."""
    if inside:
        with transaction(bench), bench.store.snapshot() as read, pytest.raises(StatementRefused):
            read(sql)
    else:
        with bench.store.snapshot() as read, pytest.raises(StatementRefused):
            read(sql)

    assert rows(bench) == []


def settle(bench: Workbench, outcome: Outcome, *drafts: Draft, **options: Any) -> Any:
    """Settle a started job with follow-ups."""
    claim = bench.start(**options)
    (settled,) = bench.store.settle([Settlement(claim.id, claim.token, outcome, follow_ups=drafts)], durable=False)
    return settled


def test_follow_ups_come_right_after_their_job(bench: Workbench) -> None:
    """In order, and after its own end, so that it may hand its key on."""
    settled = settle(bench, Succeeded(), draft("b"), draft("a", dedupe_key="k"), draft("c"), dedupe_key="k")

    assert (settled.verdict, settled.refused) == (Verdict.SUCCEEDED, ())
    assert [(change.kind, change.state) for change in bench.feed[2:]] == [
        ("a", JobState.SUCCEEDED), ("b", JobState.QUEUED), ("a", JobState.QUEUED), ("c", JobState.QUEUED),
    ]  # fmt: skip


def test_a_refused_follow_up_undoes_nothing(bench: Workbench) -> None:
    """Neither the success nor the others; a taken key of the same kind is no refusal."""
    bench.enqueue("x", dedupe_key="k")
    bench.store.register([], [], ["old"])

    settled = settle(
        bench, Succeeded(), draft("y", dedupe_key="k"), draft("old"), draft("x", dedupe_key="k"), draft("z")
    )

    assert settled.refused == (("y", "DedupeConflict"), ("old", "RetiredKind"))
    assert [job.kind for job in bench.store.find(every(JobState.QUEUED), limit=None)] == ["z", "x"]


@pytest.mark.parametrize("lost", [False, True], ids=["failed", "superseded"])
def test_a_run_that_did_not_succeed_has_no_follow_ups(bench: Workbench, lost: bool) -> None:
    """Nor has one whose token is old."""
    claim = bench.start()
    token, outcome = ("old", Succeeded()) if lost else (claim.token, Failed(error="no"))

    bench.store.settle([Settlement(claim.id, token, outcome, follow_ups=(draft("b"),))], durable=False)

    assert bench.store.kinds(["b"]) == []
